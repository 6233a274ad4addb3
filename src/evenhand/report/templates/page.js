// Interaction of a report: values of marks under pointer and keyboard, sorting and filtering of tables.
// Text is inserted as text, never as markup, so that names from data cannot inject any.
(() => {
  "use strict";

  // --- Values of marks ---------------------------------------------------------------------------------------------

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  // screen readers read the label of the mark itself
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  let shown = null;

  const place = () => {
    if (!shown) return;
    const at = shown.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth - own.width - 8;
    const above = at.top - own.height - 8;
    tip.style.left = `${Math.max(8, Math.min(at.left + at.width / 2 - own.width / 2, room))}px`;
    tip.style.top = `${above >= 8 ? above : at.bottom + 8}px`;
  };

  const hide = () => {
    if (shown) shown.classList.remove("active");
    shown = null;
    tip.hidden = true;
  };

  const show = (mark) => {
    if (shown === mark) return;
    hide();
    shown = mark;
    mark.classList.add("active");
    // measured in the corner, where its width is not limited
    tip.style.left = tip.style.top = "0";
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    place();
  };

  const distance = (mark, event) => {
    const at = mark.querySelector("circle.hit").getBoundingClientRect();
    return Math.hypot(event.clientX - at.left - at.width / 2, event.clientY - at.top - at.height / 2);
  };

  // the areas of close points overlap: the point nearest to the pointer is chosen
  const nearest = (mark, event) => {
    if (!mark.querySelector("circle.hit")) return mark;
    const points = [...mark.ownerSVGElement.querySelectorAll(".mark")].filter((m) => m.querySelector("circle.hit"));
    return points.reduce((best, m) => (distance(m, event) < distance(best, event) ? m : best), mark);
  };

  // one Tab stop per figure; arrow keys move between its marks
  const step = (event, marks, mark) => {
    const last = marks.length - 1;
    const here = marks.indexOf(mark);
    const goals = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: last };
    if (event.key === "Escape") hide();
    if (!(event.key in goals)) return;
    event.preventDefault();
    const next = marks[Math.max(0, Math.min(goals[event.key], last))];
    marks.forEach((other) => other.setAttribute("tabindex", "-1"));
    next.setAttribute("tabindex", "0");
    next.focus();
  };

  const prepareMark = (mark, marks) => {
    const title = mark.querySelector("title");
    // a title would show a second, slower tooltip
    mark.setAttribute("aria-label", title.textContent);
    title.remove();
    mark.addEventListener("pointermove", (event) => show(nearest(mark, event)));
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", () => show(mark));
    mark.addEventListener("blur", hide);
    mark.addEventListener("click", (event) => nearest(mark, event).focus());
    mark.addEventListener("keydown", (event) => step(event, marks, mark));
  };

  for (const figure of document.querySelectorAll("figure")) {
    const marks = [...figure.querySelectorAll(".mark")];
    marks.forEach((mark, i) => {
      mark.setAttribute("tabindex", i ? "-1" : "0");
      prepareMark(mark, marks);
    });
  }
  // a tip has a fixed place: it would stay behind
  document.addEventListener("scroll", place, { capture: true, passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

  // --- Tables that sort --------------------------------------------------------------------------------------------

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    if (!("v" in cell.dataset)) return cell.textContent.trim();
    return cell.dataset.v === "" ? null : Number(cell.dataset.v);
  };

  const compare = (a, b, sign) => {
    // unknown values come last in both directions
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), undefined, { numeric: true });
  };

  const sortBy = (table, head, column) => {
    const rows = [...table.tBodies[0].rows];
    const isNumber = rows.some((row) => typeof valueOf(row, column) === "number");
    const now = head.getAttribute("aria-sort");
    const first = isNumber ? "descending" : "ascending";
    const other = isNumber ? "ascending" : "descending";
    const way = now === first ? other : first;
    const sign = way === "ascending" ? 1 : -1;
    rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), sign));
    rows[0].parentNode.append(...rows);
    for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", way);
    return `Sorted by ${head.textContent.trim()}, ${way}.`;
  };

  const makeSortable = (table, announce) => {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => announce(sortBy(table, head, column)));
    });
  };

  // --- Tables that filter ------------------------------------------------------------------------------------------

  // the filter searches words; columns of numbers are only sorted
  const wordsOf = (row) =>
    [...row.cells]
      .filter((cell) => !("v" in cell.dataset))
      .map((cell) => cell.textContent.toLowerCase())
      .join(" ");

  const filter = (rows, words) => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = wordsOf(row);
      row.hidden = !wanted.every((word) => text.includes(word));
    }
  };

  for (const table of document.querySelectorAll("table.sortable")) {
    const box = table.closest(".box");
    const search = box.parentNode.querySelector(`.search[data-for="${CSS.escape(box.getAttribute("aria-label"))}"]`);
    const hasSearch = search !== null;
    const status = hasSearch ? search.querySelector("[role=status]") : null;
    const rows = [...table.tBodies[0].rows];
    const count = () => `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown.`;
    const announce = (text) => {
      if (status) status.textContent = `${count()} ${text}`.trim();
    };
    makeSortable(table, announce);
    if (!hasSearch) continue;
    search.hidden = false;
    announce("");
    search.querySelector("input").addEventListener("input", (event) => {
      filter(rows, event.target.value);
      announce("");
    });
  }

  // --- Tables wider than the page ----------------------------------------------------------------------------------

  const hintOf = (box) => {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "Scroll the table sideways for more columns →";
    // the box itself is announced as a region that scrolls
    hint.setAttribute("aria-hidden", "true");
    box.before(hint);
    return hint;
  };

  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) hints.get(target).hidden = target.scrollWidth <= target.clientWidth + 1;
  });
  const hints = new Map([...document.querySelectorAll(".box[role=region]")].map((box) => [box, hintOf(box)]));
  for (const box of hints.keys()) watch.observe(box);

  // --- Data that are saved -----------------------------------------------------------------------------------------

  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([document.getElementById("data").textContent], { type: "application/json" }));
    link.download = `${document.title.replace(/[^\p{L}\p{N}]+/gu, " ").trim().slice(0, 64)}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };

  for (const line of document.querySelectorAll(".download")) {
    line.hidden = false;
    line.querySelector("button").addEventListener("click", save);
  }
})();
