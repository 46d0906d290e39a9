"""The only place that signs, verifies, seals and opens: node keys, signed frames, boxed datagrams."""
