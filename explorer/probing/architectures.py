"""Published models by architecture, as far as their caches are concerned: the fields of each `config.json` that matter.

One model for each architecture that is proven. The figures are those of the named models as published, or the default
values of the configuration class in transformers 5.24 ("defaults"). A proof needs a real geometry, not this one in
particular: it holds for the reader of the family.
"""

from typing import Any

from explorer.probing.attention_models import ATTENTION_MODELS
from explorer.probing.latent_models import LATENT_MODELS
from explorer.probing.state_models import STATE_MODELS

ARCHITECTURES: dict[str, dict[str, Any]] = ATTENTION_MODELS | LATENT_MODELS | STATE_MODELS
