//! One line that says what was read and how: what nobody said and was found out stands in it, too.

use metastate::CountMode;

use crate::error::{Result, shorten};
use crate::second::SecondLabel;
use crate::settings::{As, CellSize, InputSettings};
use crate::source::{Format, Source};
use crate::table::Tables;
use crate::{Data, guess};

/// What the sources were read as.
pub(crate) fn line(sources: &[Source], as_: As, data: &Data, settings: &InputSettings) -> Result<String> {
    let table = sources.iter().all(|s| guess::may_be_table(s.format));
    let text = as_ == As::Trajectories && settings.state.is_none();
    let what = match (as_, data) {
        (As::Trips, Data::Log(_)) => format!("{}{}", trips(settings), actions(settings)),
        (As::Trips, _) => trips(settings),
        (As::Trajectories, _) => trajectories(&sources[0], settings),
        (As::Counts, Data::Counts(counted)) if table => counts(settings, counted.counts.lag()),
        (As::Matrix, _) => "a transition matrix: each row sums to one".to_owned(),
        _ => "a matrix of counts: the entry in row i and column j says how often i was followed by j".to_owned(),
    };
    let layout = if table && !text {
        format!(" ({})", Tables::layout_of(&sources[0], settings.unpack_limit(sources[0].bytes), &settings.text)?)
    } else {
        String::new()
    };
    let second = settings.second.as_ref().map(second).unwrap_or_default();
    let guessed = if settings.as_.is_none() && !guess::says_kind(settings) { "; recognised from the file, --as changes it" } else { "" };
    Ok(format!("read as {what}{second}{layout}{guessed}"))
}

fn second(second: &SecondLabel) -> String {
    let value = second.value.as_ref().map(|v| format!(", the reward is {}", column(v))).unwrap_or_default();
    format!("; the {} is {}{value}", second.option, column(&second.expression.to_string()))
}

fn column(name: &str) -> String {
    format!("`{}`", shorten(name))
}

fn trips(settings: &InputSettings) -> String {
    let name = |column_name: &Option<String>| column(column_name.as_deref().unwrap_or_default());
    let each = settings.weight.as_ref().map_or_else(|| "each counts once".to_owned(), |w| format!("each counts {} times", column(w)));
    if settings.from_lon.is_none() {
        return format!("trips, one a row: from {} to {}, {each}", name(&settings.from), name(&settings.to));
    }
    let cells = match settings.cell {
        CellSize::Degrees(side) => format!("square cells of {side} degrees"),
        CellSize::H3(level) => format!("hexagons of H3, resolution {level}"),
    };
    format!(
        "trips, one a row: from longitude {} and latitude {} to longitude {} and latitude {}, between {cells}, {each}",
        name(&settings.from_lon),
        name(&settings.from_lat),
        name(&settings.to_lon),
        name(&settings.to_lat)
    )
}

/// What was done at each step, and the episodes.
fn actions(settings: &InputSettings) -> String {
    let Some(log) = &settings.log else { return String::new() };
    let paid = log.reward.as_ref().map_or_else(|| ", without rewards".to_owned(), |r| format!(", the reward is {}", column(r)));
    let order = log.time.as_ref().map_or_else(String::new, |t| format!(" sorted by {}", column(t)));
    let episodes = log.id.as_ref().map_or_else(String::new, |id| format!(", an episode for each {}{order}", column(id)));
    format!("; the action is {}{paid}{episodes}", column(&log.action))
}

fn counts(settings: &InputSettings, lag: usize) -> String {
    let name = |given: &Option<String>, default: &str| column(given.as_deref().unwrap_or(default));
    let lag = if lag == 1 { String::new() } else { format!(", counted at a lag of {lag} frames") };
    format!(
        "counts: {} says how often {} was followed by {}{lag}",
        name(&settings.weight, "count"),
        name(&settings.from, "from"),
        name(&settings.to, "to")
    )
}

fn trajectories(source: &Source, settings: &InputSettings) -> String {
    let how = match (&settings.state, source.format) {
        (Some(state), _) => frames(state, settings),
        (None, Format::Npy) => "whole numbers of states, one trajectory a row".to_owned(),
        (None, _) => "one a line, labels separated by blanks or commas".to_owned(),
    };
    format!("trajectories, {how}{}", at_lag(settings))
}

/// What the rows of a table are that was counted elsewhere.
pub(crate) fn rows(as_: As, settings: &InputSettings) -> String {
    match (as_, &settings.state) {
        (As::Trips, _) => trips(settings),
        (As::Trajectories, Some(state)) => format!("trajectories, {}{}", frames(state, settings), at_lag(settings)),
        _ => counts(settings, settings.lag),
    }
}

fn frames(state: &str, settings: &InputSettings) -> String {
    let which = settings.id.as_ref().map_or_else(|| "one a file".to_owned(), |id| format!("one for each {}", column(id)));
    let order = settings.time.as_ref().map_or_else(|| "in the order of the rows".to_owned(), |t| format!("sorted by {}", column(t)));
    format!("{which}, a frame a row: the state is {}, {order}", column(state))
}

fn at_lag(settings: &InputSettings) -> String {
    match (settings.lag, settings.count) {
        (1, _) => String::new(),
        (lag, CountMode::Sliding) => format!(", counted at a lag of {lag} frames"),
        (lag, CountMode::Strided) => format!(", counted at a lag of {lag} frames, every {lag}th pair"),
    }
}
