//! The table of links.

use super::{Form, Results, all_links, id};

/// Sizes of blocks in the table, in bytes.
const SHOWN: [u32; 2] = [4 << 10, 128 << 10];

impl Results {
    /// A Markdown table for small and large blocks: milliseconds until the block arrives,
    /// milliseconds of a whole request, and megabytes of blocks per second.
    pub fn table(&self) -> String {
        let mut lines = vec![
            "| link | ORAM | 4 KiB: there in ms | whole in ms | MB/s | 128 KiB: there in ms | \
             whole in ms | MB/s |"
                .to_owned(),
            "|---|---|---|---|---|---|---|---|".to_owned(),
        ];
        for link in all_links() {
            for form in Form::ALL {
                let cells = SHOWN.map(|block_bytes| {
                    let cell = self.cell(form, link, block_bytes);
                    cell.map_or_else(
                        || "– | – | –".to_owned(),
                        |cell| {
                            format!(
                                "{:.0} | {:.0} | {:.3}",
                                cell.answer_seconds * 1e3,
                                cell.serial_seconds * 1e3,
                                cell.bytes_per_second() / 1e6
                            )
                        },
                    )
                });
                lines.push(format!("| {} | {form} | {} |", id(link), cells.join(" | ")));
            }
        }
        lines.join("\n")
    }
}
