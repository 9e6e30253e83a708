"""Masks as arrays and tensors.

A bit mask is an array of `int32` words, one row a sequence: bit `t % 32` of word `t // 32` is 1
iff token `t` may follow. A `bool` mask has one element a token id.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy


def allocate_masks(rows: int, vocabulary: Any) -> numpy.ndarray:
    """A bit mask of `rows` rows that allows everything."""
    return numpy.full((rows, vocabulary.mask_words), -1, dtype=numpy.int32)


def as_array(out: Any) -> numpy.ndarray:
    """A NumPy array over the same memory: of a CPU tensor, or of an object with a writable buffer.

    Errors: `TypeError` where that is not possible without a copy, `ValueError` for memory that
    cannot be written.
    """
    if isinstance(out, numpy.ndarray):
        return out
    if is_tensor(out):
        if out.device.type != "cpu":
            raise TypeError(f"masks are made on the CPU; this tensor is on {out.device}")
        return out.detach().numpy()
    try:
        view = memoryview(out)
    except TypeError:
        name = type(out).__name__
        raise TypeError(f"a mask is an array, a tensor or a buffer, not {name}") from None
    if view.readonly:
        raise ValueError("the mask's buffer is read-only")
    if view.format in ("i", "I", "l", "L") and view.itemsize == 4:
        return numpy.asarray(view).view(numpy.int32)
    if view.format in ("b", "B", "c"):
        return numpy.frombuffer(view, dtype=numpy.int32)
    raise TypeError(f"a mask's buffer has bytes or words of 32 bits, not items of {view.format!r}")


def is_tensor(value: Any) -> bool:
    """Whether the value is a tensor of torch, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def apply_mask(logits: Any, mask: Any) -> Any:
    """Sets the logits of tokens that may not follow to minus infinity, in place, and returns them.

    `logits`: a floating-point array or tensor, `(ids,)` or `(rows, ids)`, on any device. `mask`:
    bit masks or `bool` masks, as an array or a tensor, of the same number of rows. Ids beyond the
    mask are not allowed. Errors: `ValueError` if the shapes do not go together.
    """
    ids = logits.shape[-1]
    shapes = f"the mask has shape {tuple(mask.shape)}, the logits {tuple(logits.shape)}"
    if tuple(logits.shape[:-1]) != tuple(mask.shape[:-1]):
        raise ValueError(shapes)
    # The last word of a bit mask may be longer than the logits, and flags may not.
    is_flags = str(mask.dtype).endswith("bool")
    beyond = mask.shape[-1] - ids if is_flags else mask.shape[-1] * 32 - 31 - ids
    if beyond > 0:
        raise ValueError(shapes)
    if is_tensor(logits):
        return _apply_to_tensor(logits, mask)
    allowed = numpy.zeros(logits.shape, dtype=bool)
    flags = unpack(as_array(mask))[..., :ids]
    allowed[..., : flags.shape[-1]] = flags
    logits[~allowed] = -numpy.inf
    return logits


def unpack(mask: numpy.ndarray) -> numpy.ndarray:
    """A bit mask as a `bool` mask, one element a bit. A `bool` mask is returned as it is."""
    if mask.dtype == bool:
        return mask
    words = numpy.ascontiguousarray(mask).astype("<i4", copy=False)
    return numpy.unpackbits(words.view(numpy.uint8), axis=-1, bitorder="little").astype(bool)


def _apply_to_tensor(logits: Any, mask: Any) -> Any:
    import torch

    if not is_tensor(mask):
        mask = torch.from_numpy(as_array(mask))
    mask = mask.to(logits.device)
    if mask.dtype != torch.bool:
        bits = torch.arange(32, dtype=torch.int32, device=mask.device)
        mask = ((mask.unsqueeze(-1) >> bits) & 1).bool().flatten(-2)
    mask = mask[..., : logits.shape[-1]]
    beyond = logits.shape[-1] - mask.shape[-1]
    if beyond:
        mask = torch.nn.functional.pad(mask, (0, beyond), value=False)
    return logits.masked_fill_(~mask, float("-inf"))
