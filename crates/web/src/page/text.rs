//! Words for the page: a small magazine about coasts, written for this purpose.

use super::random::Random;

const SENTENCES: [&str; 44] = [
    "The ferry leaves when the pilot says so, and not a minute before.",
    "Nobody on the quay could say who had painted the bollards yellow.",
    "A coast is never as long as the map says, and never as short as the walk feels.",
    "The keeper writes down the wind four times a day, as her mother did.",
    "Between the two headlands the water runs faster than a horse can trot.",
    "We waited for the tide with bread, cheese and one folding chair between us.",
    "Most of the houses face away from the sea, which tells you what winter is like.",
    "At low water you can walk to the island; at high water you can only admire it.",
    "The last mile is always the one that nobody measured.",
    "Old charts mark the shoal with a cross and a single word: patience.",
    "Every harbour has a bench, and every bench has its regulars.",
    "The fog came in from the west and took the village roof by roof.",
    "It takes eleven minutes to climb the tower and about as long to get your breath back.",
    "He counts the waves between two gusts and claims that it helps.",
    "What looks like a straight line of foam is where two currents disagree.",
    "The bakery opens at five because the boats do.",
    "There is one road in, and in January there is none.",
    "She keeps a drawer of lost buttons, sorted by the storm that brought them.",
    "The path climbs through heather, crosses a stile and forgets where it was going.",
    "From up here the breakwater looks like something a child left behind.",
    "A good rope is dry, quiet and older than the person who trusts it.",
    "The lamp turns once in twelve seconds; after a week you stop noticing, after a year you wake when it stops.",
    "They moved the church twice and the graveyard never.",
    "You can hear the buoy long before you can see it.",
    "In the net loft hangs a barometer that has been wrong since the war, and everybody consults it.",
    "The sand here is made of shells, so the beach shines even under cloud.",
    "Two of the three channels silted up, and the third got all the gossip.",
    "The lock opens slowly, as if it had to think about each boat.",
    "Gulls know the timetable better than the passengers do.",
    "On the ebb the estuary smells of salt, iron and last year's reeds.",
    "We asked for directions and were given a story instead, which turned out to be shorter.",
    "The tide table hangs beside the calendar, and only one of them is ever right.",
    "By noon the light is so hard that the cliffs look drawn with a ruler.",
    "A pilot's first rule is to arrive with more water under the keel than opinions on deck.",
    "The survey of 1902 lists nine wells, of which we found four and fell into one.",
    "Nothing ages a boat like a summer in which nobody sails it.",
    "The dunes have moved forty metres inland, carrying the fence with them.",
    "Someone has planted leeks in the lee of the sea wall, and they are excellent.",
    "The second bell means wait, and the third means you should have.",
    "In the evening the whole bay turns the colour of strong tea.",
    "They say the echo answers in the dialect of the next valley.",
    "The bridge hums at exactly one wind speed, which the children can sing.",
    "It was the kind of rain that makes no sound and soaks you anyway.",
    "Leave the gate as you found it, unless you found it open.",
];

const TITLES: [&str; 12] = [
    "The lamp that turns once in twelve seconds",
    "A short history of the long breakwater",
    "Who counts the waves at Skarholm",
    "Eleven ways to wait for a tide",
    "The ferry without a timetable",
    "Notes from a beach made of shells",
    "Where two currents disagree",
    "The village that faces away from the sea",
    "Nine wells, four found",
    "Leeks in the lee of the wall",
    "The buoy you hear before you see it",
    "What the dunes carried inland",
];

const AUTHORS: [&str; 4] = ["Ane Skagen", "Tomé Ribeira", "Iris Halloran", "Jón Brekka"];
const SECTIONS: [&str; 6] = ["Harbours", "Tides", "Walks", "Light", "Weather", "People"];

/// The title of the article `index`.
pub(super) fn title(index: usize) -> &'static str {
    TITLES[index % TITLES.len()]
}

/// The author number `index`.
pub(super) fn author(index: usize) -> &'static str {
    AUTHORS[index % AUTHORS.len()]
}

/// The section number `index`.
pub(super) fn section(index: usize) -> &'static str {
    SECTIONS[index % SECTIONS.len()]
}

/// A few sentences, none of them twice in a row.
pub(super) fn paragraph(random: &mut Random, sentences: usize) -> String {
    let mut text = String::new();
    let mut last = usize::MAX;
    for _ in 0..sentences {
        let mut next = random.below(SENTENCES.len() as u64) as usize;
        if next == last {
            next = (next + 1) % SENTENCES.len();
        }
        last = next;
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(SENTENCES[next]);
    }
    text
}

/// Names for the generated parts of style sheets and scripts.
pub(super) const WORDS: [&str; 32] = [
    "anchor", "barge", "beacon", "bollard", "breaker", "buoy", "cable", "cairn", "channel", "cleat", "current",
    "delta", "dune", "ebb", "fathom", "fjord", "gull", "harbour", "heather", "inlet", "jetty", "keel", "lagoon",
    "lantern", "marsh", "mooring", "pilot", "quay", "reed", "shoal", "swell", "tide",
];
