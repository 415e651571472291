use super::*;

fn written(inputs: &[&str], settings: &InputSettings, dialect: Dialect) -> Result<String> {
    query(&inputs.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), settings, dialect, Answer::Triplets)
}

fn trips() -> InputSettings {
    InputSettings { from: Some("a".into()), to: Some("b\"`".into()), ..InputSettings::default() }
}

#[test]
fn names_and_texts_stay_what_they_are() {
    assert_eq!(Dialect::DuckDb.text("it's \\"), "'it''s \\'");
    assert_eq!(Dialect::Spark.text("it's \\"), "'it\\'s \\\\'");
    for (dialect, table, column) in [
        (Dialect::DuckDb, "\"s\".\"t\"", "\"b\"\"`\""),
        (Dialect::Postgres, "\"s\".\"t\"", "\"b\"\"`\""),
        (Dialect::Spark, "`s`.`t`", "`b\"```"),
        (Dialect::BigQuery, "`s.t`", "`b\"\\``"),
    ] {
        let sql = written(&["s.t"], &trips(), dialect).unwrap();
        assert!(sql.contains(&format!("FROM {table}")) && sql.contains(&format!("{column} AS to_key")), "{sql}");
    }
    let files = written(&["a.parquet", "it's.parquet"], &trips(), Dialect::DuckDb).unwrap();
    assert!(files.contains("read_parquet(['a.parquet', 'it''s.parquet'])"), "{files}");
    let files = written(&["a.parquet", "b.parquet"], &trips(), Dialect::Spark).unwrap();
    assert!(files.contains("FROM parquet.`a.parquet` UNION ALL SELECT"), "{files}");
}

#[test]
fn what_an_engine_cannot_count_is_refused() {
    let walk = InputSettings { state: Some("s".into()), time: Some("t".into()), ..InputSettings::default() };
    let no_order = InputSettings { time: None, ..walk.clone() };
    let cases = [
        (vec!["t.csv"], trips(), Dialect::Spark, "only through a view"),
        (vec!["t.parquet"], trips(), Dialect::Postgres, "reads tables"),
        (vec!["t", "u.parquet"], trips(), Dialect::DuckDb, "are mixed"),
        (vec!["-"], trips(), Dialect::DuckDb, "cannot read this input"),
        (vec!["t"], no_order, Dialect::Spark, "--time is missing"),
        (vec!["t", "u"], walk.clone(), Dialect::Spark, "--id is missing"),
        (vec!["t"], InputSettings { lag: 0, ..walk.clone() }, Dialect::Spark, "--lag"),
        (vec!["t"], InputSettings { weight: Some("w".into()), ..walk }, Dialect::Spark, "--weight cannot be used with trajectories"),
        (vec!["t"], InputSettings::default(), Dialect::Spark, "not clear what this table holds"),
        (vec!["t"], InputSettings { min_share: 2.0, ..trips() }, Dialect::Spark, "--min-share"),
        (vec!["t"], InputSettings { where_: Some("hour(x) = 1".into()), ..trips() }, Dialect::Spark, "not supported"),
    ];
    for (inputs, settings, dialect, said) in cases {
        let refused = written(&inputs, &settings, dialect).unwrap_err().to_string();
        assert!(refused.contains(said), "{refused}");
    }
}
