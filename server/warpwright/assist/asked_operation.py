"""Whether words ask for anything that a kernel may compute: they name an operation, by a word or by a sign, in English.

A note, a licence line or the head of a section does not, so that no model is asked to make a kernel of it. The words are
those of which people's requests consist; what they mean is for others to read.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from warpwright.assist.formula_examples import operations
from warpwright.assist.wording_table import phrases

_NOTE = re.compile(
    r"^\s*(?:todo|fixme|note|hack|xxx|bug|warning|nb)\b(?:\s*\(\s*[\w.@-]+\s*\))?\s*:?\s*", re.IGNORECASE
)
_SIGN = re.compile(
    r"""
      (?<![/?&.\w])\w+[\])'}]*\s*[-+*/|&^]?=\s*[-\w(\[{|]              # y = ..., w -= ...
    | [\w\])}]\s*(?:[+*^]|\*\*)\s*[\w(]                   # a + b
    | [\w\])}]\s/\s[\w(]                                  # a / b
    | \w\[[^\]]*\] | \w\([^)]*\w[^)]*\) | _\{             # x[i], f(x), w_{ij}
    | -> | [<>\u03a3\u221a\u2211\u220f\u2190\u2192\u2016\u2264\u2265\u2207\u2202\u27e8\u00d7\u00f7]
    """,
    re.VERBOSE,
)
_OPERATIONS = frozenset(
    """
    generation nearest neighbour neighbor force density contract random contour times many degree life look
    accuracy add added adadelta adagrad advect advection affine alibi area attention augmentation autocorrelation
    automaton average averaged backward bellman biased biquad bitwise blend blur blurred bswap32 broadcast cast celu
    centred centered cholesky clamped clip clipped combination combine compact compare comparison complement
    composite conv convert converted convolve convolution convtranspose2d copied copy correlate correlation count
    covariance crc crc32 crop cross crossentropyloss cubed cumsum cumulative cut ddpm decay deinterleave delay depthwise
    dequantise dequantize descent determinant dice difference diff differencing diffusion dilate dilation dilution
    distance distances divide divided dot double doubled doubling downsample dropout edge eigen ema encode decode
    entropy erode erosion euler expand fft fill filter flip focal fraction gather gathered gate gating gaussian geglu
    glu grad gradient gram gray grayscale haar halve halved hamming hann hash hashing heat hinge hsv huber iir
    indexed integrate integration interleave interleaved interpolate interpolated interpolation inverse invert jaccard
    jacobi keep kl laplace leapfrog length lerp linear lion logcumsumexp logit lookahead lookup loss luma luminance
    matern52 matmul median merge mirror mirrored mish mix mixup mod modulo moment moments momentum morphology
    multiplied multiply multiplication mul nll norm normalised normalized normalise normalize normalisation
    normalization one-hot onehot pack packed pad padded padding parity partition path pdf pearson penalise penalize
    permute permuted pool pooling popcount predict prelu price probability product project projection qkv quantile
    quantise quantised quantize quantized radix raised rank ratio rayleigh reciprocal recurrence reduce reduction
    reflect reflection reglu relabel repeat repeated resample reset resize reverse reversed reward rmsd rmsprop rope
    rotary rotate rotated rotation round rounded saturate saturated scale scaled scatter score segment select
    selected selu sharpen shift shifted shuffle sign slice soft softclip solve sort sorted sparse spmm spmv split
    squared stack standardise standardize statistic statistics stencil step subtract subtracted sum swap swiglu symlog
    take tap threshold thresholded tile toggle topk tone trace transform transformation transpose transposed truncate
    turn unbiased uncentered unfold unpack unpacked update upsample upsampled upwind variance verlet viterbi warp wavelet
    wave weighted whiten whitening window wrap xor xorshift yuv zero zeroed
    """.split()
)
"""Words that name what is done, beside those of the wordings and of worked examples."""
_OF_OTHERS = frozenset(
    """
    und der das ein eine einer jede jeder jedes von mit für auf ist zeile zeilen spalte werden wird muss nicht den dem
    le les des une chaque pour avec dans et est sur ligne lignes colonne somme
    el los las del una cada fila filas para con por suma
    il della delle ogni riga somma per
    linha coluna soma em dos
    het een elke rij
    """.split()
)
"""Small words of other languages, and theirs for rows, columns and sums. English and formulas have one of them at most."""
_MOST_OF_OTHERS = 1
_ALPHABETS = ("LATIN", "GREEK", "MATHEMATICAL", "DOUBLE-STRUCK", "SCRIPT", "SUPERSCRIPT", "SUBSCRIPT", "MODIFIER",
              "MICRO", "FEMININE", "MASCULINE", "N-ARY", "BLACK-LETTER", "ANGSTROM", "KELVIN", "OHM")  # fmt: skip


def asks_for_operation(comment: str) -> bool:
    """Whether a comment names an operation, and is in English as far as its small words tell.

    >>> [asks_for_operation(each) for each in ("row sums of x", "w_k <- w_k / 2", "crc32 of each message")]
    [True, True, True]
    >>> [asks_for_operation(each) for each in ("this is a nice file", "FIXME(jk): too slow", "Summe der Zeilen von x")]
    [False, False, False]
    """
    text = _NOTE.sub("", comment)
    words = re.findall(r"[^\W\d_][\w-]*", text.lower())
    if len({*words} & _OF_OTHERS) > _MOST_OF_OTHERS or any(map(_is_of_another_alphabet, text)):
        return False
    return bool(operations(text) or {*map(_singular, words)} & _known() or _SIGN.search(text))


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    return _OPERATIONS | {
        words[0] for words, each in phrases().items() if each.operation is not None and len(words) == 1
    }


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "su" else word


def _is_of_another_alphabet(character: str) -> bool:
    return (
        not character.isascii() and character.isalpha() and not unicodedata.name(character, "").startswith(_ALPHABETS)
    )
