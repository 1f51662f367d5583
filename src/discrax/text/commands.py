"""`discrax infill --checkpoint FOLDER "the [MASK] sat on [MASK]"` and `discrax stochastic prompt`."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from discrax.voice import Voice, as_json, is_stdout


# A command: each parameter is an option of the command line.
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
    voice: Voice = Voice(),  # noqa: B008
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
        out: Where to write the fillings, as JSON; "-" is standard output.
        voice: What is printed.
    """
    from discrax.core.files import check_writable, write_whole
    from discrax.core.seeds import key_of
    from discrax.text.infilling import infill

    if is_stdout(out):
        out, voice = None, replace(voice, json=True)
    if out is not None:
        check_writable(out)
    key, settings = key_of(seed), {"sampler": sampler, "top": top, "all_tokens": all_tokens}
    found = infill(key, checkpoint, sentence, num_chains=chains, num_steps=steps, **settings)
    if found.unknown:
        voice.say(f"Not in the vocabulary, read as [UNK]: {', '.join(found.unknown)}.")
    probabilities = dict(zip(found.sentences, found.log_probs, strict=True))
    counts = Counter(found.sentences).items()
    rows = [(f"{probabilities[filled]:.3f}", str(count), filled) for filled, count in counts]
    voice.show(("log probability", "chains", "sentence"), rows)
    asked = {"sentence": sentence, "checkpoint": str(checkpoint), "sampler": sampler, "chains": chains}
    written = asked | {"steps": steps, "seed": seed} | found.as_dict()
    voice.give(written)
    if out is not None:
        write_whole(out, as_json(written) + "\n")
        voice.say(out)
    if not found.run.is_complete:
        raise SystemExit("discrax: interrupted before all steps were made; these are the fillings so far.")


def tune_prompt(
    checkpoint: Path | None = None,
    images: Path | None = None,
    length: int = 8,
    steps: int = 3000,
    chains: int = 10,
    seed: int = 0,
    voice: Voice = Voice(),  # noqa: B008
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
        voice: What is printed.
    """
    import numpy as np

    from discrax.core.checks import whole
    from discrax.core.seeds import key_of
    from discrax.text.clip import read_clip
    from discrax.text.prompts import clip_target, made_up_target, read_embeddings, sampled_prompts

    key = key_of(seed)
    for name, count in {"length": length, "steps": steps, "chains": chains}.items():
        whole(name, count, least=1)
    if (checkpoint is None) != (images is None):
        have, lack = ("images", "checkpoint") if checkpoint is None else ("checkpoint", "images")
        raise ValueError(
            f"--{have} was given without --{lack}: the folder of CLIP and its embeddings of images go together."
        )
    if checkpoint is None or images is None:
        target, text = made_up_target(seed, length), lambda tokens: " ".join(map(str, tokens))
        voice.say("No checkpoint was given: this is a small random tower and made-up images, and tokens are numbers.")
    else:
        embeddings, clip = read_embeddings(images), read_clip(checkpoint)
        target, text = clip_target(clip, embeddings, length), clip.tokenizer.text
    found = sampled_prompts(key, target, num_chains=chains, num_steps=steps)
    order = np.argsort(-found.similarities, kind="stable")
    best = [(float(found.similarities[i]), text(found.tokens[i].tolist())) for i in order]
    voice.give([{"similarity": likeness, "prompt": prompt} for likeness, prompt in best])
    voice.show(("similarity", "prompt"), [(f"{likeness:.4f}", prompt) for likeness, prompt in best])
    if not found.is_complete:
        raise SystemExit("discrax: interrupted before all steps were made; these are the best prompts so far.")
