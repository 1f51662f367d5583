"""`discrax infill --checkpoint FOLDER "the [MASK] sat on [MASK]"` and `discrax stochastic prompt`."""

import json
from collections import Counter
from pathlib import Path


def infill_sentence(
    sentence: str,
    /,
    checkpoint: Path,
    sampler: str = "pas",
    chains: int = 25,
    steps: int = 50,
    top: int = 5,
    all_tokens: bool = False,
    seed: int = 0,
    out: Path | None = None,
) -> None:
    """Fills in the [MASK]s of a sentence with a masked language model (BERT) and prints the most probable fillings.

    Args:
        sentence: Words, with [MASK] for each one that is wanted. For a model of sequences, letters without spaces.
        checkpoint: The folder of the model, as Hugging Face writes it: config.json, vocab.txt, model.safetensors.
        sampler: `discrax samplers` lists them.
        chains: Fillings that are drawn.
        steps: Of the sampler, for each of them.
        top: How many are kept, the most probable ones.
        all_tokens: Special and unused tokens of the vocabulary may be filled in as well.
        seed: Of the random numbers.
        out: Where to write the fillings, as JSON.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from discrax.core.files import check_writable, write_whole
    from discrax.core.seeds import key_of
    from discrax.text.infilling import infill

    if out is not None:
        check_writable(out)
    key, settings = key_of(seed), {"sampler": sampler, "top": top, "all_tokens": all_tokens}
    found = infill(key, checkpoint, sentence, num_chains=chains, num_steps=steps, **settings)
    console = Console()
    if found.unknown:
        console.print(Text(f"Not in the vocabulary, read as [UNK]: {', '.join(found.unknown)}."))
    table = Table("log probability", "chains", "sentence")
    probabilities = dict(zip(found.sentences, found.log_probs, strict=True))
    for filled, count in Counter(found.sentences).items():
        table.add_row(f"{probabilities[filled]:.3f}", str(count), Text(filled))
    console.print(table)
    if out is not None:
        asked = {"sentence": sentence, "checkpoint": str(checkpoint), "sampler": sampler, "chains": chains}
        written = asked | {"steps": steps, "seed": seed} | found.as_dict()
        write_whole(out, json.dumps(written, indent=1, ensure_ascii=False) + "\n")
        console.print(Text(str(out)))
    if not found.run.is_complete:
        raise SystemExit("discrax: interrupted before all steps were made; these are the fillings so far.")


def tune_prompt(
    checkpoint: Path | None = None,
    images: Path | None = None,
    length: int = 8,
    steps: int = 3000,
    chains: int = 10,
    seed: int = 0,
) -> None:
    """Finds prompts that CLIP holds to be like given images, and prints the best one of every chain.

    Args:
        checkpoint: The folder of CLIP, as Hugging Face writes it: config.json, vocab.json, merges.txt,
            model.safetensors. Without one, a small random tower and made-up images show how it goes.
        images: A .npy file with CLIP's embeddings of the images, one a row.
        length: Tokens of a prompt.
        steps: Of the sampler, for each chain.
        chains: How many prompts are looked for.
        seed: Of the random numbers.
    """
    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from discrax.core.checks import whole
    from discrax.core.seeds import key_of
    from discrax.text.clip import read_clip
    from discrax.text.prompts import clip_target, made_up_target, read_embeddings, sampled_prompts

    console, key = Console(), key_of(seed)
    for name, count in {"length": length, "steps": steps, "chains": chains}.items():
        whole(name, count, least=1)
    if (checkpoint is None) != (images is None):
        have, lack = ("images", "checkpoint") if checkpoint is None else ("checkpoint", "images")
        raise ValueError(
            f"--{have} was given without --{lack}: the folder of CLIP and its embeddings of images go together."
        )
    if checkpoint is None or images is None:
        target, text = made_up_target(seed, length), lambda tokens: " ".join(map(str, tokens))
        console.print(
            "No checkpoint was given: this is a small random tower and made-up images, and tokens are numbers."
        )
    else:
        embeddings, clip = read_embeddings(images), read_clip(checkpoint)
        target, text = clip_target(clip, embeddings, length), clip.tokenizer.text
    found = sampled_prompts(key, target, num_chains=chains, num_steps=steps)
    table = Table("similarity", "prompt")
    for i in np.argsort(-found.similarities, kind="stable"):
        table.add_row(f"{found.similarities[i]:.4f}", Text(text(found.tokens[i].tolist())))
    console.print(table)
    if not found.is_complete:
        raise SystemExit("discrax: interrupted before all steps were made; these are the best prompts so far.")
