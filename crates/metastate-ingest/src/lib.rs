//! Reads.
mod codes; mod error; mod source; mod progress; mod manifest; mod table; mod labels; mod columns; mod filter;
pub use codes::*; pub use error::*; pub use source::*; pub use progress::*; pub use manifest::*; pub use filter::Filter;
