//! Plots the owner's requests and what storage saw, as text for a terminal. A Braille character has
//! 2 × 4 dots.

use super::session::DemoSession;
use crate::drawing::stride;

/// Characters per row of a plot, without its frame.
const COLUMNS: usize = 78;
const ROWS: usize = 14;

const DOTS_A_COLUMN: usize = 2;
const DOTS_A_ROW: usize = 4;

/// Plots the owner's requests above what storage saw.
pub(super) fn plots(session: &DemoSession) -> String {
    let DemoSession { summary, blocks, .. } = session;
    let names: Vec<_> = session.phases.iter().map(|phase| phase.name).collect();
    let owner: Vec<_> = (0..).zip(session.addresses()).collect();
    let visits = summary.visits.iter().filter(|visit| !visit.is_eviction);
    let storage: Vec<_> = visits.map(|visit| (visit.access, visit.bucket)).collect();
    format!(
        "What the owner did: {}\n{}\nWhat storage saw: each access reads another random path (the \
         moving gap is where evictions write next)\n{}",
        names.join(" | "),
        scatter(&owner, [session.requests(), *blocks], ["requests", "blocks"]),
        scatter(&storage, [summary.accesses, summary.leaf_buckets], ["accesses", "buckets"]),
    )
}

/// A framed plot of points with `x < x_count` and `y < y_count`, y upwards.
fn scatter(
    points: &[(u64, u64)],
    [x_count, y_count]: [u64; 2],
    [x_name, y_name]: [&str; 2],
) -> String {
    let mut rows = [[0u8; COLUMNS]; ROWS];
    for (x, y) in points.iter().step_by(stride(points.len())) {
        let x = scale(*x, x_count, COLUMNS * DOTS_A_COLUMN);
        let y = ROWS * DOTS_A_ROW - 1 - scale(*y, y_count, ROWS * DOTS_A_ROW);
        rows[y / DOTS_A_ROW][x / DOTS_A_COLUMN] |= dot(x % DOTS_A_COLUMN, y % DOTS_A_ROW);
    }
    let rows = rows.map(|row| format!("│{}│", row.map(braille).iter().collect::<String>()));
    let rule = "─".repeat(COLUMNS);
    format!("┌{rule}┐ {y_count} {y_name}\n{}\n└{rule}┘ {x_count} {x_name}\n", rows.join("\n"))
}

/// Scales `value`, which is below `count`, to a position below `dots`. Rounds down.
fn scale(value: u64, count: u64, dots: usize) -> usize {
    (u128::from(value) * dots as u128 / u128::from(count)) as usize
}

/// The bit of the dot in a column and a row of a Braille character, counted from its upper left
/// corner.
fn dot(column: usize, row: usize) -> u8 {
    const BITS: [[u8; DOTS_A_ROW]; DOTS_A_COLUMN] =
        [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    BITS[column][row]
}

fn braille(dots: u8) -> char {
    const BLANK: u32 = 0x2800;
    char::from_u32(BLANK + u32::from(dots)).unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_are_where_they_belong() {
        let (width, height) = ((COLUMNS * DOTS_A_COLUMN) as u64, (ROWS * DOTS_A_ROW) as u64);
        let plot = scatter(&[(0, 0), (width - 1, height - 1)], [width, height], ["", "blocks"]);
        let lines: Vec<Vec<char>> = plot.lines().map(|line| line.chars().collect()).collect();
        let drawn = |row: usize, column: usize| lines[row + 1][column + 1];
        assert_eq!((drawn(ROWS - 1, 0), drawn(0, COLUMNS - 1)), ('⡀', '⠈'));
        assert_eq!(plot.chars().filter(|c| ('⠁'..='⣿').contains(c)).count(), 2);
    }
}
