"""From stored examples to images: sources, decoders, chunks of parallel reads."""
