//! What the binaries of semel are made of.
