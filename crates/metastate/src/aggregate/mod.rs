//! What the factors say about the chain.

pub mod latent;
