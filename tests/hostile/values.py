"""Hostile values, as source text: what may be put in the place of an honest argument of a kind, class by class.

A class is *refused* where no sensible reading of the value exists: a call that accepts one has failed. The others may
be accepted or refused, as long as the answer is a result or a sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

Source = Callable[[Random], str]


@dataclass(frozen=True)
class Class:
    """A class of hostility: its values, and whether a call must refuse them."""

    name: str
    values: Source
    refused: bool = False


def _of(*sources: str) -> Source:
    return lambda random: random.choice(sources)


def _whole(low: int, high: int) -> Source:
    return lambda random: str(random.randint(low, high))


def _real(low: float, high: float) -> Source:
    return lambda random: repr(random.uniform(low, high))


def _refused(name: str, *sources: str) -> Class:
    return Class(name, _of(*sources), True)


def _either(name: str, *sources: str) -> Class:
    return Class(name, _of(*sources))


NONE = _refused("None", "None")
WRONG_TYPE = _refused(
    "wrong type", "'two'", "{}", "object()", "print", "b'2'", "dx", "[[]]", "{'a'}", "...", "lambda:2"
)
NAN = _refused("NaN", "float('nan')", "np.float32('nan')", "np.nan", "jnp.nan", "-np.nan")
INFINITE = _refused("infinite", "float('inf')", "-float('inf')", "np.inf", "np.float32('-inf')")
COMPLEX = _refused("complex", "1j", "2+1j", "np.complex64(1+2j)", "complex('nan')")
NEGATIVE_WHOLE = Class("negative", _whole(-(10**9), -1), True)
NEGATIVE = Class("negative", lambda random: repr(-(10 ** random.uniform(-30, 30))), True)
ZERO = _refused("zero", "0", "0.0", "-0.0", "np.int64(0)", "np.float32(0)")
FRACTION = Class("fraction", _real(1.01, 1.99), True)
BEYOND_FLOATS = _refused("beyond floats", "10**400", "-(10**400)", "10**5000")
BOOL = _either("bool", "True", "False", "np.bool_(True)")
ONE_IN_AN_ARRAY = _either("array of one", "np.array(2)", "np.array([2])", "jnp.array(2.0)", "[2]", "(2,)")
SEVERAL = _refused("several numbers", "np.ones(3)", "[1.0,2.0]", "(1,2,3)", "np.zeros((2,2))", "range(3)")
NUMERAL = _refused("string of a number", "'2'", "'0.5'", "'1e3'", "''")
HUGE_MEMORY = _refused("huge", "10**13", "10**11", "2**63", "2**62", "10**18", "10**400")
HUGE = _refused("huge", "10**400", "10**100")

_ANY_NUMBER = (NONE, WRONG_TYPE, NAN, COMPLEX, SEVERAL, NUMERAL, BEYOND_FLOATS, BOOL, ONE_IN_AN_ARRAY)
_WHOLE = (NONE, WRONG_TYPE, NAN, INFINITE, COMPLEX, NEGATIVE_WHOLE, FRACTION, SEVERAL, NUMERAL, BOOL, ONE_IN_AN_ARRAY)


def _array_with(*bad: str) -> Source:
    """Honest arrays with one bad entry; `{honest}` is put in by the caller."""
    return lambda random: f"spoilt({{honest}},{random.randrange(100)},{random.choice(bad)})"


ARRAY = (
    NONE,
    _refused("wrong type", "'abc'", "{}", "object()", "print", "b'abc'", "dx", "...", "{'a':1}"),
    Class("NaN", _array_with("np.nan"), True),
    Class("infinite", _array_with("np.inf", "-np.inf")),
    Class("complex", _array_with("1j"), True),
    Class("strings", _of("np.full(np.shape({honest}),'a')", "['a','b']"), True),
    Class("objects", _of("np.full(np.shape({honest}),None)", "np.full(np.shape({honest}),object())"), True),
    Class("too many axes", _of("np.stack([np.asarray({honest})]*2)", "np.asarray({honest})[None,None]")),
    Class("too few axes", _of("np.float64(0.5)", "3")),
    Class("wrong size", _of("np.concatenate([np.asarray({honest})]*3)", "np.asarray({honest})[:1]"), False),
    Class("empty", _of("[]", "np.zeros(0)", "np.zeros((0,0))", "np.zeros((0,4))"), True),
    _refused("ragged", "[[1,2],[3]]", "[1,[2]]"),
    Class("bool", _of("np.asarray({honest})>0")),
    Class("float16", _of("np.asarray({honest},np.float16)", "np.asarray({honest},np.longdouble)")),
    Class("integers", _of("np.asarray({honest}).astype(int)", "np.asarray({honest}).astype(np.uint8)")),
    Class("huge", _array_with("1e300")),
    _either("structured", "np.zeros(4,dtype=[('a',float)])", "np.array(['2020-01-01']*4,dtype='datetime64[D]')"),
    _either("iterator", "iter([1,2,3,4])", "(i for i in range(4))", "map(float,'1234')"),
)

CODES = (
    _refused("wrong type", "'abc'", "{}", "object()", "print", "b'abc'", "dx", "{'a':1}", "3"),
    Class("NaN", _array_with("np.nan"), True),
    Class("complex", _array_with("1j"), True),
    Class("fraction", _array_with("0.5"), True),
    Class("negative", _array_with("-1", "-2", "-128", "-300", "-(2**40)"), True),
    Class("too large", _array_with("100", "127", "255", "256", "10**12"), True),
    Class("strings", _of("np.full(np.shape({honest}),'a')", "['a','b']"), True),
    Class("objects", _of("np.full(np.shape({honest}),None)"), True),
    Class("too many axes", _of("np.asarray({honest})[None,None]"), True),
    Class(
        "wrong size",
        _of(
            "np.concatenate([np.asarray({honest}),np.asarray({honest})],axis=-1)",
        ),
        True,
    ),
    Class("empty", _of("[]", "np.zeros(0,int)", "np.zeros((0,4),int)"), True),
    _refused("ragged", "[[1,2],[3]]", "[1,[2]]"),
    Class("bool", _of("np.asarray({honest})>0")),
)

KEY = (
    _refused("number", "0", "3.5", "np.int64(3)", "np.float32(0)", "True", "-1", "10**23"),
    NONE,
    _refused("wrong type", "'0'", "{}", "object()", "print", "b'0'", "jax.random.key", "dx"),
    _refused("batch of keys", "jax.random.split(jax.random.key(0),2)", "jax.random.split(jax.random.key(0),(2,2))",
             "jax.random.split(jax.random.PRNGKey(0),3)", "[jax.random.key(0)]", "(jax.random.key(0),)",
             "jax.random.key(0)[None]", "jax.random.split(jax.random.key(0),0)"),
    _refused("array", "np.zeros(2)", "np.zeros(3,np.uint32)", "np.ones((2,2),np.uint32)", "jnp.arange(4.)",
             "np.zeros(2,int)"),
    _either("other generator", "jax.random.key(0,impl='rbg')", "jax.random.key(0,impl='unsafe_rbg')",
            "jax.random.PRNGKey(0)", "np.random.default_rng(0)"),
)  # fmt: skip

SHAPE = (
    NONE, _refused("wrong type", "'ab'", "{}", "object()", "print", "dx", "b'ab'", "('a',)", "[None]", "{3}"),
    NAN, INFINITE, COMPLEX, NEGATIVE_WHOLE, FRACTION,
    _refused("zero", "0", "(0,)", "(2,0)", "[0,0]"),
    _refused("empty", "()", "[]", "np.zeros(0,int)"),
    _refused("negative size", "(-1,2)", "(2,-3)", "[-1]"),
    _refused("nested", "[[2,2]]", "((1,),(2,))", "np.ones((2,2),int)"),
    _refused("huge", "10**13", "(10**7,10**7)", "10**400", "2**63", "(2**40,2**40)"),
    BOOL,
)  # fmt: skip

SPACE = (
    NONE,
    _refused("number", "4", "0", "4.0", "np.int64(4)", "(4,)", "[2,2]"),
    _refused("class instead of a space", "dx.Binary", "dx.Spin", "dx.Categorical", "dx.Space", "dx.Ordinal"),
    _refused("wrong type", "'binary'", "object()", "{}", "print", "np.zeros(4)", "lambda e:e", "type", "spins"),
)

TARGET = (
    NONE,
    _refused("class instead of a target", "dx.targets.Ising", "dx.Target", "dx.targets.Bernoulli"),
    _refused("wrong type", "'ising'", "3", "object()", "{}", "np.zeros((4,4))", "lambda e:e.sum()", "[]", "bits", "dx"),
    _refused("several targets", "[spins,spins]", "(spins,)"),
)

SAMPLER = (
    NONE,
    _refused("unknown name", "'pasx'", "''", "'PAS'", "'auto '", "'dx.samplers.pas'", "'gibbs,chromatic'"),
    _refused("class instead of a kernel", "dx.samplers.pas", "dx.samplers.dmala", "dx.samplers.gibbs", "dx.Kernel"),
    _refused(
        "wrong type", "3", "object()", "{}", "b'pas'", "['pas']", "('pas','dmala')", "np.nan", "print", "spins", "dx"
    ),
)

CHOICE = (
    _refused("unknown name", "'nonsense'", "''", "'AUTO'", "'a'*1000", "'\\x00'", "'\U0001f600'"),
    _refused("wrong type", "3", "object()", "{}", "b'auto'", "['auto']", "np.nan", "print", "np.zeros(3)", "1j"),
)

FUNCTION = (
    NONE,
    _refused("wrong type", "3", "'f'", "object()", "{}", "[]", "np.zeros(4)", "dx", "float('nan')"),
    _refused("returns None", "lambda *a:None"),
    _refused("returns a string", "lambda *a:'a'", "lambda *a:object()", "lambda *a:print"),
    _refused("returns a vector", "lambda *a:jnp.ones(7)", "lambda *a:jnp.zeros((3,2))", "lambda *a:[1.0,2.0,3.0]"),
    _refused("returns complex", "lambda *a:jnp.asarray(1j)", "lambda *a:1j"),
    _refused("returns NaN", "lambda *a:jnp.asarray(jnp.nan)", "lambda *a:jnp.sum(jnp.asarray(a[0],float))*jnp.nan"),
    _refused("wrong number of arguments", "lambda:0.0", "lambda a,b,c,d,e:0.0"),
    _either("unhashable", "unhashable"),
    _either("a class", "dict", "dx.Binary", "type"),
    _either("calls numpy", "lambda *a:float(np.asarray(a[0]).sum())", "lambda *a:np.float64(0)"),
    _either("returns a whole number", "lambda *a:3", "lambda *a:jnp.asarray(3)", "lambda *a:True"),
)

THING = (  # an object of the library, of no further kind
    NONE,
    _refused(
        "wrong type", "3", "'thing'", "object()", "{}", "[]", "np.zeros(4)", "print", "float('nan')", "dx", "1j", "b''"
    ),
    _refused("class instead of an instance", "dict", "dx.Binary", "dx.Target", "type"),
)

IN_FILE = (
    _refused("missing", "'missing.txt'", "'no/such/folder.txt'", "''", "'/proc/none'"),
    _refused("folder instead of a file", "folder", "'.'", "'/'"),
    _refused("empty file", "empty_file"),
    _refused("junk", "junk_file", "words_file", "latin_file", "cut_file"),
    _refused("not a path", "3", "object()", "b'x'", "['a.txt']", "1j"),
    _refused("impossible path", "'a\\x00b'", "'x'*5000", "graph_file+'/x'", "link_loop"),
)
IN_FOLDER = (
    _refused("missing", "'missing'", "'no/such/folder'", "'/proc/none'"),
    _refused("file instead of a folder", "graph_file", "junk_file"),
    _refused("empty folder", "empty_folder"),
    _refused("not a path", "3", "object()", "b'x'", "['a']", "1j"),
    _refused("impossible path", "'a\\x00b'", "'x'*5000", "graph_file+'/x'", "link_loop"),
)
OUT_FILE = (
    _refused("folder instead of a file", "folder", "'.'", "'/'"),
    _refused("cannot be written", "'/proc/none/x.json'", "'/sys/x.json'", "graph_file+'/x.json'", "'/proc/x.json'"),
    _refused("not a path", "3", "object()", "b'x'", "['a']", "1j"),
    _refused("impossible path", "'a\\x00b'", "'x'*5000", "'y'*300", "link_loop+'/x'"),
)
OUT_FOLDER = (
    _refused("file instead of a folder", "graph_file", "junk_file"),
    _refused("cannot be written", "'/proc/none/x'", "'/sys/x'", "graph_file+'/x'", "'/proc/x'"),
    _refused("not a path", "3", "object()", "b'x'", "['a']", "1j"),
    _refused("impossible path", "'a\\x00b'", "'x'*5000", "'y'*300", "link_loop+'/x'"),
)
SENTENCE = (
    NONE,
    _refused("wrong type", "3", "object()", "['a']", "b'a'", "np.nan"),
    _either("odd text", "''", "' '", "'\\x00'", "'\U0001f600'*50", "'a'*3000", "'[MASK]'*500", "'[MASK'", "'\\n'"),
)
FLAG = (
    _either("wrong type", "'no'", "3", "None", "object()", "[]", "np.nan"),
    _either("ambiguous", "np.array([True,False])", "np.bool_(False)", "jnp.array(True)"),
)

KINDS: dict[str, tuple[Class, ...]] = {
    "count": (*_WHOLE, ZERO, HUGE),
    "count0": (*_WHOLE, HUGE),
    "size": (*_WHOLE, ZERO, HUGE_MEMORY),
    "size0": (*_WHOLE, HUGE_MEMORY),
    "seed": (NONE, WRONG_TYPE, NAN, COMPLEX, FRACTION, NUMERAL, SEVERAL, BOOL,
             _either("huge", "10**23", "10**400", "2**64"), _either("negative", "-1", "-10**12")),
    "number": (*_ANY_NUMBER, INFINITE),
    "positive": (*_ANY_NUMBER, INFINITE, NEGATIVE, ZERO),
    "positive0": (*_ANY_NUMBER, INFINITE, NEGATIVE),
    "probability": (*_ANY_NUMBER, INFINITE, NEGATIVE, Class("above one", _real(1.001, 100), True)),
    "array": ARRAY,
    "codes": CODES,
    "key": KEY,
    "shape": SHAPE,
    "space": SPACE,
    "target": TARGET,
    "sampler": SAMPLER,
    "choice": CHOICE,
    "function": FUNCTION,
    "thing": THING,
    "in_file": IN_FILE,
    "in_folder": IN_FOLDER,
    "out_file": OUT_FILE,
    "out_folder": OUT_FOLDER,
    "sentence": SENTENCE,
    "flag": FLAG,
}  # fmt: skip


# --- arguments of commands: texts ---


def _text(name: str, *texts: str, refused: bool = True) -> Class:
    return Class(name, _of(*texts), refused)


_NO_NUMBER = _text("no number", "two", "", "1,5", "0x10", "½", "--", "[1]")
_COMMAND_WHOLE = (
    _NO_NUMBER,
    _text("fraction", "1.5", "2.0", "1e3"),
    _text("NaN", "nan"),
    _text("infinite", "inf", "-inf"),
    Class("negative", _whole(-(10**9), -1), True),
    _text("complex", "1j"),
)
_COMMAND_PATHS = (_text("impossible path", "x" * 5000, "{graph_file}/x", "{link_loop}/x"),)

COMMAND_KINDS: dict[str, tuple[Class, ...]] = {
    "count": (*_COMMAND_WHOLE, _text("zero", "0")),
    "count0": _COMMAND_WHOLE,
    "size": (*_COMMAND_WHOLE, _text("zero", "0"), _text("huge", "1" + "0" * 13, "1" + "0" * 11, "9" * 30, "9" * 400)),
    "seed": (_NO_NUMBER, _text("fraction", "1.5"), _text("NaN", "nan"),
             _text("huge", "9" * 23, "9" * 400, refused=False), _text("negative", "-1", refused=False)),
    "positive": (_NO_NUMBER, _text("NaN", "nan"), _text("infinite", "inf", "-inf", "1e400"), _text("zero", "0"),
                 Class("negative", _real(-1e6, -1e-6), True)),
    "positive0": (_NO_NUMBER, _text("NaN", "nan"), _text("infinite", "inf", "-inf", "1e400"),
                  Class("negative", _real(-1e6, -1e-6), True)),
    "probability": (_NO_NUMBER, _text("NaN", "nan"), _text("infinite", "inf"), _text("above one", "1.5", "1e30"),
                    Class("negative", _real(-1e6, -1e-6), True)),
    "number": (_NO_NUMBER, _text("NaN", "nan"), _text("infinite", "inf", "-inf")),
    "choice": (_text("unknown name", "nonsense", "", "PAS", "auto ", "\U0001f600", "a" * 1000),),
    "in_file": (_text("missing", "missing.txt", "no/such/file", ""), _text("folder instead of a file", "{folder}", "."),
                _text("empty file", "{empty_file}"),
                _text("junk", "{junk_file}", "{words_file}", "{latin_file}", "{cut_file}"), *_COMMAND_PATHS),
    "in_folder": (_text("missing", "missing", "no/such/folder"), _text("file instead of a folder", "{graph_file}"),
                  _text("empty folder", "{empty_folder}"), *_COMMAND_PATHS),
    "out_file": (_text("folder instead of a file", "{folder}", "."), *_COMMAND_PATHS,
                 _text("cannot be written", "/proc/none/x.json", "/sys/x.json", "{graph_file}/x.json")),
    "out_folder": (_text("file instead of a folder", "{graph_file}"), *_COMMAND_PATHS,
                   _text("cannot be written", "/proc/none/x", "/sys/x", "{graph_file}/x")),
    "sentence": (_text("odd text", "", " ", "\U0001f600" * 50, "a" * 3000, "[MASK]" * 500, "[MASK", "\n",
                       refused=False),),
}  # fmt: skip
