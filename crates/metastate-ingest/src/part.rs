//! Parts of a count, for those who never want all of it in one place: `--shard 2/4` keeps the transitions out of every fourth state and passes over the others.
//!
//! Which part a state belongs to depends on its label alone, so that every program that counts the same rows draws the same lines, whatever its threads. All rows are read for every
//! part: the ledger of each is that of the whole. What is left out by the states' shares depends on all transitions, which no part sees; that is for whoever puts the parts together.

use metastate::Label;
use serde::{Deserialize, Serialize};

use crate::assemble::CountedStates;
use crate::codes::Code;
use crate::counter::PairBatch;
use crate::error::{IngestError, Result};
use crate::manifest::{InputRecord, hash_of};
use crate::settings::InputSettings;

/// One of several parts, numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardOf {
    /// Which one.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

/// More parts than this are a slip of the finger.
const MOST_PARTS: usize = 100_000;

impl std::str::FromStr for ShardOf {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) && of <= MOST_PARTS => Ok(ShardOf { number, of }),
            _ => Err(format!("`{text}` is no part such as 2/4, the second of four")),
        }
    }
}

impl std::fmt::Display for ShardOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl ShardOf {
    /// Whether the transitions out of the state with this label belong to the part.
    fn owns(self, label: &Label) -> bool {
        // FNV-1a over the label as it is written, its upper bits folded into the lower: the same on every machine.
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = match label {
            Label::Text(text) => text.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step),
            Label::Integer(n) => n.to_string().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step),
        };
        (hash ^ hash >> 32) % self.of as u64 == self.number as u64 - 1
    }
}

/// Lets the pairs of one part through, and remembers what the others hold: which states there are, and the sum of all weights.
#[derive(Debug, Default)]
pub(crate) struct Sieve {
    part: Option<ShardOf>,
    mine: Vec<bool>,
    seen: Vec<bool>,
    total: f64,
}

impl Sieve {
    pub fn new(part: Option<ShardOf>) -> Self {
        Sieve { part, ..Sieve::default() }
    }

    /// Takes the pairs of other parts out of a batch; `labels` are those of all states so far.
    pub fn sift(&mut self, batch: &mut PairBatch, labels: &[Label]) {
        let Some(part) = self.part else { return };
        let known = self.mine.len();
        self.mine.extend(labels[known..].iter().map(|label| part.owns(label)));
        self.seen.resize(labels.len(), false);
        let mut kept = 0;
        for k in 0..batch.pairs.len() {
            let pair = batch.pairs[k];
            let (from, to) = ((pair >> 32) as usize, pair as u32 as usize);
            (self.seen[from], self.seen[to]) = (true, true);
            self.total += batch.weights.as_ref().map_or(1.0, |w| w[k]);
            if self.mine[from] {
                batch.pairs[kept] = pair;
                if let Some(weights) = &mut batch.weights {
                    weights[kept] = weights[k];
                }
                kept += 1;
            }
        }
        batch.pairs.truncate(kept);
        batch.weights.iter_mut().for_each(|w| w.truncate(kept));
    }

    /// The states that any part has, and the sum over all parts; nothing where there are no parts.
    pub fn of_all(&self) -> (Vec<u32>, Option<f64>) {
        ((0..self.seen.len() as u32).filter(|&i| self.seen[i as usize]).collect(), self.part.map(|_| self.total))
    }
}

impl CountedStates {
    /// The same without the transitions of other parts, for counts that were read as a whole.
    pub(crate) fn only(mut self, part: Option<ShardOf>, file: &str) -> Result<Self> {
        let Some(part) = part else { return Ok(self) };
        let (index, total) = (self.counts.index().clone(), self.counts.transitions());
        let mine: Vec<bool> = index.labels().map(|label| part.owns(&label)).collect();
        let triplets: Vec<(u32, u32, f64)> = self.counts.csr().triplets().filter(|t| mine[t.0 as usize]).collect();
        let ledger = self.counts.ledger().clone();
        self.counts = metastate::Counts::from_triplets(index, &triplets).map_err(|e| IngestError::from_core(e, Some(file)))?;
        *self.counts.ledger_mut() = ledger;
        self.sum_of_parts = Some(total);
        Ok(self)
    }
}

/// Refuses what a part cannot know.
pub(crate) fn check(settings: &InputSettings) -> Result<()> {
    let asked = [("--min-share", settings.min_share > 0.0), ("--max-self-share", settings.max_self_share.is_some())];
    if settings.part.is_some() && settings.second.is_some() {
        return Err(IngestError::new(Code::Option, "slices and actions cannot be counted in shards yet").remedy("count them as a whole"));
    }
    match asked.into_iter().find(|(_, given)| settings.part.is_some() && *given) {
        None => Ok(()),
        Some((option, _)) => Err(IngestError::new(
            Code::Option,
            format!("{option} looks at all transitions of a state, and a shard holds those out of some states only"),
        )
        .remedy(format!("count the shards without it, and give {option} to the command that reads them all"))),
    }
}

/// What a counts file says of the part that it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartRecord {
    number: usize,
    of: usize,
    /// Of the bytes that were counted, and of the options that they were counted with: the same for all parts of one count.
    inputs: String,
    options: String,
    /// Pairs in this file: where states are few, a part may have none.
    pairs: usize,
    /// The sum over all parts.
    total: f64,
}

impl PartRecord {
    pub fn new(part: ShardOf, settings: &InputSettings, inputs: &[InputRecord], pairs: usize, total: f64) -> Self {
        // Limits and which part it is change no count.
        let options = InputSettings { part: None, reader: None, memory_limit: None, keep_frames: false, ..settings.clone() };
        let bytes: Vec<(u64, &str)> = inputs.iter().map(|r| (r.bytes, r.sha256.as_str())).collect();
        let (options, inputs) = (hash_of(format!("{options:?}").as_bytes()), hash_of(format!("{bytes:?}").as_bytes()));
        PartRecord { number: part.number, of: part.of, inputs, options, pairs, total }
    }
}

impl PartRecord {
    /// The sum over all parts.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Whether this file has no pair.
    pub fn is_empty(&self) -> bool {
        self.pairs == 0
    }
}

/// A sum over all parts may differ from what the first said by so much of itself: the order of the additions.
const ROUNDING: f64 = 1e-9;

/// Whether these files, each with the part it holds, are all parts of one count, each once. True where there are parts.
pub(crate) fn check_whole(files: &[(&str, Option<&PartRecord>)]) -> Result<bool> {
    let Some((first_name, first)) = files.iter().find_map(|(name, record)| Some((*name, (*record)?))) else { return Ok(false) };
    let refuse = |sentence: String, name: &str, remedy: String| Err(IngestError::new(Code::Shard, sentence).file(name).remedy(remedy));
    let mut place: Vec<Option<&str>> = vec![None; first.of];
    for (name, record) in files {
        let Some(record) = record else {
            let remedy = "put the shards together first: metastate count SHARD... --out whole.parquet";
            return refuse("this counts file is no shard, and others are".into(), name, remedy.into());
        };
        let foreign = match record {
            r if r.of != first.of => format!("this is one of {} shards, and {first_name} is one of {}", r.of, first.of),
            r if r.inputs != first.inputs => format!("this shard was counted from other data than {first_name}"),
            r if r.options != first.options => format!("this shard was counted with other options than {first_name}"),
            _ => String::new(),
        };
        if !foreign.is_empty() {
            return refuse(foreign, name, "give the shards of one count, all counted alike".into());
        }
        let Some(there) = place.get_mut(record.number.wrapping_sub(1)) else {
            return refuse(format!("this says that it is shard {} of {}", record.number, record.of), name, "count it again".into());
        };
        if let Some(other) = there.replace(name) {
            return refuse(
                format!("shard {} of {} is given twice, also as {other}", record.number, record.of),
                name,
                "give every shard once".into(),
            );
        }
    }
    let missing: Vec<String> = (0..first.of).filter(|k| place[*k].is_none()).map(|k| (k + 1).to_string()).collect();
    match missing.as_slice() {
        [] => Ok(true),
        [one] => refuse(
            format!("shard {one} of {} is missing", first.of),
            first_name,
            format!("give all shards; count the missing one with --shard {one}/{}", first.of),
        ),
        more => {
            let (some, rest) = more.split_at(more.len().min(8));
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            refuse(format!("shards {}{more} of {} are missing", some.join(", "), first.of), first_name, "give all shards".into())
        }
    }
}

/// Whether the parts add up to what each of them says.
pub(crate) fn check_sum(records: &[&PartRecord], found: f64, file: &str) -> Result<()> {
    let wrong = |r: &&&PartRecord| r.total.is_nan() || (r.total - found).abs() > ROUNDING * r.total.abs();
    match records.iter().find(wrong) {
        None => Ok(()),
        Some(record) => {
            Err(IngestError::new(Code::Shard, format!("the shards hold {found} transitions together, and should hold {}", record.total))
                .file(file)
                .remedy("one of the files was changed; count the shards again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_belongs_to_one_part() {
        let labels: Vec<Label> =
            (0..3000).map(|i| if i % 2 == 0 { Label::Integer(i - 700) } else { Label::from(format!("s{i}").as_str()) }).collect();
        for of in [1, 2, 3, 7] {
            let sizes: Vec<usize> = (1..=of).map(|number| labels.iter().filter(|l| ShardOf { number, of }.owns(l)).count()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), 3000);
            assert!(sizes.iter().all(|n| (n * of).abs_diff(3000) < 600), "{sizes:?}");
        }
        for bad in ["0/4", "5/4", "2", "a/b", "1/0", "-1/3", "1/1000000", "1/2/3", ""] {
            assert!(bad.parse::<ShardOf>().is_err(), "{bad}");
        }
        assert_eq!("2/4".parse::<ShardOf>().unwrap().to_string(), "2/4");
    }
}
