//! Formats a view as JSON. Other programs rely on the names of the fields.

use std::collections::BTreeMap;

use oblivio_core::view::Operation;
use serde_json::{Value, json};

use super::evaluation::ViewEvaluation;
use super::exchanges::{Evictions, Exchanges, MessageCount};
use super::leaves::LeafCounts;
use super::parties::Parties;
use super::rates::Rates;
use super::uniformity::Uniformity;

/// Maximum number of spans for which rates are given.
const SPANS_MAX: usize = 240;

/// The figures of a view.
pub(super) fn figures(evaluation: &ViewEvaluation) -> Value {
    let counts = &evaluation.counts;
    let totals = Operation::ALL.map(|operation| {
        let total = counts.tally.of(operation);
        let figures = json!({ "trips": total.trips, "pieces": total.events, "bytes": total.bytes });
        (operation.name(), figures)
    });
    let mut shown = BTreeMap::from(totals);
    let names = counts.capabilities.map(|these| these.names().collect::<Vec<_>>());
    shown.insert("capabilities", json!(names));
    shown.insert("rates", json!(counts.rates.as_ref().map(rates)));
    let trees = counts.trees.iter().map(|(id, tree)| {
        let levels = tree.levels().map(|(level, counts)| {
            json!({ "level": level, "read": counts.read, "written": counts.written })
        });
        json!({
            "tree": id,
            "levels": levels.collect::<Vec<_>>(),
            "leaves": evaluation.leaves.get(id).map(leaves),
        })
    });
    shown.insert("trees", trees.collect());
    shown.insert("pieces_of_other_trees", json!(counts.pieces_left_out));
    shown
        .insert("servers", json!(counts.parties.as_ref().map(|it| servers(it, &counts.exchanges))));
    json!(shown)
}

/// The servers whose view is shown, and the messages that they sent and received.
fn servers(parties: &Parties, exchanges: &Exchanges) -> Value {
    let sent = exchanges.sent.iter().map(|((from, to), MessageCount { messages, bytes })| {
        json!({ "from": from, "to": to, "messages": messages, "bytes": bytes })
    });
    let evictions = exchanges.evictions().map(|it| {
        let Evictions { party, tree, attempts, alike, messages, bytes } = it;
        json!({
            "server": party,
            "tree": tree,
            "attempts": attempts,
            "alike": alike,
            "messages": messages,
            "bytes": bytes,
        })
    });
    json!({
        "count": parties.servers.count(),
        "may_collude": parties.servers.colluding(),
        "shown": parties.shown,
        "are_more_than_may_collude": parties.are_too_many(),
        "exchanges_recorded_of": parties.watched,
        "exchanges": sent.collect::<Vec<_>>(),
        "evictions": evictions.collect::<Vec<_>>(),
        "attempts_not_told_of": exchanges.unannounced,
    })
}

fn rates(rates: &Rates) -> Value {
    let (span, _) = rates.per_second(Operation::Read, SPANS_MAX);
    let per_second = Operation::ALL
        .map(|operation| (operation.name(), json!(rates.per_second(operation, SPANS_MAX).1)));
    json!({
        "seconds": rates.duration().as_secs_f64(),
        "span_seconds": span.as_secs_f64(),
        "trips_per_second": BTreeMap::from(per_second),
    })
}

fn leaves(tree: &LeafCounts) -> Value {
    let tested = Uniformity::of(tree.bins());
    json!({
        "leaves": tree.leaves(),
        "accesses": tree.accesses(),
        "accesses_to_unknown_leaves": tree.unknown(),
        "evictions": tree.evictions(),
        "bins": tree.bins(),
        "uniformity": tested.map(|tested| json!({
            "bins": tested.bins,
            "chi_square": tested.chi_square,
            "degrees_of_freedom": tested.degrees_of_freedom,
            "p": tested.p,
            "verdict": tested.verdict(),
        })),
    })
}
