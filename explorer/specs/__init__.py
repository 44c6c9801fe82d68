"""What a layer keeps, as values: model and device specifications."""
