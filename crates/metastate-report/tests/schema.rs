//! The schema that is shipped is the one that the types make.

use metastate_report::summary_schema;

#[test]
fn the_schema_in_docs_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/summary.schema.json");
    let shipped = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        shipped == format!("{:#}\n", summary_schema()),
        "docs/schema/summary.schema.json is not what the types make; renew it:\n  \
         cargo run --release -p metastate-report --example summary_schema > docs/schema/summary.schema.json"
    );
}

#[test]
fn every_field_of_the_schema_is_described() {
    let schema = summary_schema();
    let records = schema["$defs"].as_object().unwrap().iter().map(|(name, record)| (name.as_str(), record)).chain([("Summary", &schema)]);
    for (record, schema) in records {
        for (field, about) in schema["properties"].as_object().into_iter().flatten() {
            assert!(about["description"].is_string(), "{record}.{field}");
        }
    }
}
