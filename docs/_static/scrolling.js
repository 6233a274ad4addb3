// What scrolls sideways can be reached by keyboard, and what does not scroll is no stop of the tab key.
const SCROLLING = "pre, .formula, .scrolling, .output_subarea, .table-wrapper";

function setTabStops() {
  for (const element of document.querySelectorAll(SCROLLING)) {
    if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
    else element.removeAttribute("tabindex");
  }
}

addEventListener("load", setTabStops);
addEventListener("resize", setTabStops);
