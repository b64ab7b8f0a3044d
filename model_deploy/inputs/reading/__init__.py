"""From stored examples to images: sources, decoders, chunks that are read at the same time."""
