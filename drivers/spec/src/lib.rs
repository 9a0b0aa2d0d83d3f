//! pipeline.yaml: its model, defaults, validation with field paths, JSON Schema.
