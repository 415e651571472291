//! The JSON schema of `summary.json`, on standard output:
//! `cargo run --release -p metastate-report --example summary_schema > docs/schema/summary.schema.json`

fn main() {
    println!("{:#}", metastate_report::summary_schema());
}
