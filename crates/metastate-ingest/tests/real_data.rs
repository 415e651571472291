//! Counts of the real data sets, as an independent count gives them. Skipped, with a line, where the data is absent.

use std::path::{Path, PathBuf};

use metastate::{Counts, Label, Ledger, LedgerUnit};
use metastate_ingest::{As, CountedStates, Data, InputSettings, Silent, read, write_counts};

fn shared(name: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = ["../shared/data", "shared/data"].iter().map(|d| root.join(d).join(name)).find(|p| p.exists());
    if found.is_none() {
        println!("{name} is absent: its counts were not checked");
    }
    found.map(|p| p.display().to_string())
}

fn counted(path: &str, settings: &InputSettings) -> CountedStates {
    match read(&[path.to_owned()], settings, &mut Silent).unwrap_or_else(|e| panic!("{} {e}", e.code())).data {
        Data::Counts(counted) => counted,
        Data::Matrix(_) => panic!("a matrix was not expected"),
    }
}

fn left_out_rows(ledger: &Ledger) -> u64 {
    ledger.iter().filter(|e| e.unit == LedgerUnit::Rows).map(|e| e.count).sum()
}

fn taxi() -> InputSettings {
    InputSettings {
        where_: Some("service = 'yellow'".into()),
        from_lon: Some("pickup_lon".into()),
        from_lat: Some("pickup_lat".into()),
        to_lon: Some("dropoff_lon".into()),
        to_lat: Some("dropoff_lat".into()),
        bbox: Some("-80.07,30.69,-60.92,50.85".parse().unwrap()),
        min_share: 1e-4,
        ..InputSettings::default()
    }
}

#[test]
fn taxi_trips_of_one_day() {
    let Some(path) = shared("nyc_taxi_trips_2015-12-01.parquet") else { return };
    let all = counted(&path, &taxi());
    assert_eq!((all.counts.states(), all.counts.transitions()), (2018, 261_427.0));
    let ledger = all.counts.ledger();
    let by = |reason: &str| ledger.get(reason, LedgerUnit::Rows).map_or(0, |e| e.count);
    assert_eq!((all.rows, all.kept), (417_395, 261_427));
    assert_eq!(by("where-not-true"), 417_395 - 370_745);
    assert_eq!(all.kept + left_out_rows(ledger), all.rows);
    assert_eq!(by("outside-bbox") + by("coordinate-missing") + by("coordinate-out-of-range"), 370_745 - 364_975);
    assert!(all.hints.iter().any(|h| h.contains("--max-self-share")), "{:?}", all.hints);
    let (lon, lat) = all.coordinates.as_ref().unwrap()[0];
    let Label::Text(label) = all.counts.index().label(0) else { panic!() };
    assert_eq!(*label, *format!("{:.3},{:.3}", lon - 0.0005, lat - 0.0005));
    // Exchanged columns are noticed.
    let t = taxi();
    let exchanged = InputSettings { from_lon: t.from_lat, from_lat: t.from_lon, to_lon: t.to_lat, to_lat: t.to_lon, ..taxi() };
    assert_eq!(read(std::slice::from_ref(&path), &exchanged, &mut Silent).unwrap_err().code(), "E-INGEST-SWAPPED");
    // Self-loop filter: fewer states, and every row is still accounted for.
    let fewer = counted(&path, &InputSettings { max_self_share: Some(0.9), ..taxi() });
    assert!(fewer.counts.states() < 2018);
    assert_eq!(fewer.kept + left_out_rows(fewer.counts.ledger()), fewer.rows);
    // Through a counts file and back.
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("counts.parquet");
    write_counts(&file, &all, &[], &InputSettings::default()).unwrap();
    let back = counted(file.to_str().unwrap(), &InputSettings::default());
    assert_eq!(back.counts, all.counts);
    assert_eq!((back.coordinates, back.cell, back.rows, back.kept), (all.coordinates, all.cell, all.rows, all.kept));
}

#[test]
fn taxi_trips_of_january_2016() {
    let Some(path) = shared("nyc_taxi_trips_2016-01_sample.parquet") else { return };
    let all = counted(&path, &taxi());
    assert_eq!((all.counts.states(), all.counts.transitions()), (2083, 42_520.0));
    assert_eq!(all.kept + left_out_rows(all.counts.ledger()), all.rows);
}

#[test]
fn zone_counts_in_a_packed_table() {
    let Some(path) = shared("nyc_yellow_2019-01_zone_od_counts.csv.gz") else { return };
    let name = |s: &str| Some(s.to_owned());
    let settings = InputSettings { from: name("pickup_zone"), to: name("dropoff_zone"), weight: name("trips"), ..InputSettings::default() };
    let all = counted(&path, &settings);
    assert_eq!((all.counts.csr().nonzeros(), all.counts.transitions()), (32_242, 7_667_792.0));
}

fn npy(kind: &str, shape: &str, data: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.bytes());
    out.extend(data);
    out
}

/// The same counts through every format.
#[test]
fn a_folding_trajectory_in_every_format() {
    let Some(path) = shared("hp35_villin_microstate_traj.parquet") else { return };
    let settings = InputSettings { state: Some("micro_dist".into()), lag: 50, ..InputSettings::default() };
    let table = counted(&path, &settings);
    assert_eq!((table.counts.states(), table.counts.transitions()), (547, 1_525_991.0));
    assert_eq!((table.rows, table.kept), (1_526_041, 1_526_041));

    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| -> String {
        let at: PathBuf = dir.path().join(name);
        std::fs::write(&at, bytes).unwrap();
        at.display().to_string()
    };
    let frames = frames(&path);
    let lag = InputSettings { lag: 50, ..InputSettings::default() };
    let text: Vec<String> = frames.iter().map(i64::to_string).collect();
    assert_eq!(counted(&write("a.txt", text.join(" ").as_bytes()), &lag).counts, table.counts);
    assert_eq!(counted(&write("b.txt", text.join(",").as_bytes()), &lag).counts, table.counts);
    let array = npy("<i2", &format!("({},)", frames.len()), frames.iter().flat_map(|n| (*n as i16).to_le_bytes()));
    assert_eq!(counted(&write("a.npy", &array), &lag).counts, table.counts);
    let column = format!("state\n{}\n", text.join("\n"));
    assert_eq!(
        counted(&write("a.csv", column.as_bytes()), &InputSettings { state: Some("state".into()), ..lag.clone() }).counts,
        table.counts
    );

    // Matrices know no lag; the counts must agree, and the labels stand beside them.
    let expect = Counts::from_csr(table.counts.index().clone(), table.counts.csr().clone()).unwrap();
    let labels: Vec<String> = expect.index().labels().map(|l| l.to_string()).collect();
    let labels_file = write("labels.txt", (labels.join("\n") + "\n").as_bytes());
    let as_counts = InputSettings { as_: Some(As::Counts), labels: Some(labels_file), ..InputSettings::default() };
    let csr = expect.csr();
    let rows: String = csr.triplets().map(|(i, j, n)| format!("{},{},{n}\n", labels[i as usize], labels[j as usize])).collect();
    assert_eq!(counted(&write("t.csv", format!("from,to,count\n{rows}").as_bytes()), &InputSettings::default()).counts, expect);
    let jsonl: String = csr
        .triplets()
        .map(|(i, j, n)| format!("{{\"from\":{},\"to\":\"{}\",\"count\":{n}}}\n", labels[i as usize], labels[j as usize]))
        .collect();
    assert_eq!(counted(&write("t.jsonl", jsonl.as_bytes()), &InputSettings::default()).counts, expect);
    let d = csr.rows();
    let entries: String = csr.triplets().map(|(i, j, n)| format!("{} {} {n}\n", i + 1, j + 1)).collect();
    let mtx = format!("%%MatrixMarket matrix coordinate integer general\n% lag 50\n{d} {d} {}\n{entries}", csr.nonzeros());
    assert_eq!(counted(&write("m.mtx", mtx.as_bytes()), &as_counts).counts, expect);
    let mut dense = vec![0.0f64; d * d];
    csr.triplets().for_each(|(i, j, n)| dense[i as usize * d + j as usize] = n);
    let array = npy("<f8", &format!("({d}, {d})"), dense.iter().flat_map(|x| x.to_le_bytes()));
    assert_eq!(counted(&write("m.npy", &array), &as_counts).counts, expect);
    let columns: String = (0..d).flat_map(|j| (0..d).map(move |i| (i, j))).map(|(i, j)| format!("{}\n", dense[i * d + j])).collect();
    let mtx = format!("%%MatrixMarket matrix array real general\n{d} {d}\n{columns}");
    assert_eq!(counted(&write("n.mtx", mtx.as_bytes()), &as_counts).counts, expect);
    assert_eq!(counted(&write("m.npz", &npz(csr)), &as_counts).counts, expect);
}

/// The frames, read through the reader's own count at lag 1 of a strided walk would hide errors; so by a second reader.
fn frames(path: &str) -> Vec<i64> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int16Type;
    let file = std::fs::File::open(path).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader
        .flat_map(|b| {
            b.unwrap()
                .column_by_name("micro_dist")
                .unwrap()
                .as_primitive::<Int16Type>()
                .values()
                .iter()
                .map(|n| i64::from(*n))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// As scipy.sparse.save_npz writes it, packed.
fn npz(csr: &metastate::Csr) -> Vec<u8> {
    use std::io::Write;
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let n = csr.nonzeros();
    let members = [
        ("indices", npy("<i4", &format!("({n},)"), csr.indices().iter().flat_map(|j| (*j as i32).to_le_bytes()))),
        ("indptr", npy("<i4", &format!("({},)", csr.rows() + 1), csr.indptr().iter().flat_map(|k| (*k as i32).to_le_bytes()))),
        ("format", npy("|S3", "()", *b"csr")),
        ("shape", npy("<i8", "(2,)", [csr.rows(), csr.cols()].iter().flat_map(|k| (*k as i64).to_le_bytes()))),
        ("data", npy("<f8", &format!("({n},)"), csr.values().iter().flat_map(|x| x.to_le_bytes()))),
    ];
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(&bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}
