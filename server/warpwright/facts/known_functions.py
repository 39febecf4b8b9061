"""The functions of CUDA that take values and give values."""

from __future__ import annotations

import re

KNOWN_FUNCTIONS = re.compile(
    r"__\w+|atomic\w+|(?:f|d|u|ll|ull)?(?:min|max)f?|abs|fabsf?|l?labs|make_\w+|printf|assert|r?sqrtf?|r?cbrtf?|powf?|expf?"
    r"|exp2f?|expm1f?|exp10f?|logf?|log2f?|log10f?|log1pf?|logbf?|ilogbf?|sinf?|cosf?|tanf?|sinpif?|cospif?|sincosf?"
    r"|sincospif?|asinf?|acosf?|atanf?|atan2f?|sinhf?|coshf?|tanhf?|asinhf?|acoshf?|atanhf?|erff?|erfcf?|erfinvf?|erfcinvf?"
    r"|erfcxf?|normcdff?|normcdfinvf?|lgammaf?|tgammaf?|j0f?|j1f?|y0f?|y1f?|fmaf?|fmodf?|remainderf?|fdimf?|floorf?|ceilf?"
    r"|(?:l|ll)?(?:round|rint)f?|truncf?|nearbyintf?|r?hypotf?|r?norm[34]df?|ldexpf?|scalbl?nf?|copysignf?|nextafterf?|signbit"
    r"|isnan|isinf|isfinite|fdividef|saturate|dim3|(?:u?int|float|double)[234]?"
)
"""Functions of CUDA that take values and do not depend on which thread calls them. The warp's own, which begin with two
underscores as well, are not told apart here."""
