"""Names that people give to arrays, numbers, dimensions and sizes, a field at a time."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from warpwright.formulas.functions import FUNCTIONS, KEYWORDS, REDUCTIONS
from warpwright.formulas.types import TYPES


@dataclass(frozen=True, slots=True)
class Theme:
    """The names of one field by what they are for: arrays of values, vectors along one dimension, numbers, results."""

    arrays: str
    vectors: str
    numbers: str
    results: str
    stages: str = "s m t u q z r"


THEMES = (
    Theme("x y a b u v z", "w b c g d", "alpha beta k s lambda_ c0", "y z out r f"),
    Theme("a b c d e", "u v w p", "alpha beta gamma t s", "out y r z"),
    Theme("A B X W M", "b v w d", "alpha beta c", "Y Z out R D"),
    Theme("x input h act feat", "weight bias scale shift gain", "eps alpha temp momentum", "out y result output"),
    Theme("src data in0 in1 in2", "coef offset lut_w bias", "scale factor thresh bias0", "dst res out outp"),
    Theme(
        "pos vel force mass_in acc", "mass charge radius inv_m", "dt g0 damping k_spring cutoff",
        "new_pos energy f_out a_out",
    ),
    Theme("sig x noise ref", "taps win gain h", "fs decay mu step", "y filt est out", "e p acc m"),
    Theme("img I0 I1 frame", "kern row_gain col_gain w", "lam tau contrast gamma", "out dst edge I_out"),
    Theme("logits targets pred scores", "gamma beta cls_w mask_w", "tau margin eps label_s", "loss probs grad out"),
    Theme("price qty ret spread", "rate vol strike fee", "r0 sigma K0 maturity", "pnl value risk cost"),
    Theme("theta rho phi psi", "kappa src_t sink area", "dt dx2 nu omega", "T_new rhs flux phi_out"),
    Theme("user item emb ctx", "bias_u bias_i deg norm_w", "reg lr mu0 decay", "score rating out upd"),
    Theme("obs model resid truth", "sigma weight_n prior err", "lam delta n0 prior_s", "chi2 ll stat out"),
    Theme("d_in d_a d_b d_c", "d_w d_bias d_scale d_s", "alpha beta eps limit", "d_out d_y d_res d_dst"),
    Theme("q k v g", "bias slope cap gate", "scale temp c1", "o out p attn"),
    Theme("p grad m_buf v_buf", "lr_vec decay_vec mask_p wd_vec", "lr beta1 eps wd", "p_new upd step_out delta"),
)  # fmt: skip
INDICES = ("idx", "ids", "index", "perm", "map_idx", "src_idx", "nbr", "labels", "cols", "bucket", "seg")
MASKS = ("mask", "valid", "keep", "active", "is_set", "sel")
LENGTHS = ("lens", "length", "n_valid", "seq_len", "count", "valid_len")
DIMS = (
    ("i j k l m", "N M K L P"),
    ("i j k l m", "M N K L P"),
    ("i j k l m", "n m p q r_len"),
    ("i j k l p", "rows cols depth inner chans"),
    ("r c k l b", "R C K L B"),
    ("r c k s p", "rows cols depth steps pages"),
    ("b t d s h", "B T D S H"),
    ("b t d e s", "batch seq dim heads steps"),
    ("n c h w k", "N C H W K"),
    ("t d k l m", "T D K L M"),
    ("n d k m l", "N D K M L"),
    ("m n k l p", "M N K L P"),
    ("s t k l m", "S T K L M"),
    ("n f g k m", "n_samples n_feat groups width taps"),
    ("b i j k l", "B M N K L"),
    ("p q k l m", "P Q K L M"),
    ("u v k l m", "U V K L M"),
    ("i d k l m", "num_pts dim n_ref len2 cnt"),
    ("y x k l m", "height width ksize len2 chans"),
    ("e f k l m", "E F K L M"),
)
"""Dimensions in the order in which they are taken, and what their sizes are called."""
_KEPT = {*FUNCTIONS, *KEYWORDS, *REDUCTIONS, *TYPES, "float", "double", "half", "int", "bool"}


class Names:
    """The names of one formula, each once."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.theme = chance.choice(THEMES)
        letters, sizes = chance.choice(DIMS)
        self.dims = tuple(letters.split())
        self.sizes = dict(zip(self.dims, sizes.split(), strict=True))
        self.taken = {*_KEPT, *self.dims, *(each.upper() for each in self.dims), *self.sizes.values()}

    def of(self, pool: str | tuple[str, ...]) -> str:
        """One that is free, the usual ones more often."""
        among = pool.split() if isinstance(pool, str) else list(pool)
        if self.chance.random() < 0.5:
            self.chance.shuffle(among)
        spare = (f"{among[0].rstrip('0123456789')}{number}" for number in range(1, 20))
        name = next(each for each in (*among, *spare) if each not in self.taken)
        self.taken.add(name)
        return name
