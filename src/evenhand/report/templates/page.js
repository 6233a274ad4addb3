// Tables of a report that sort and search. The report is complete without.
// Text is inserted as text, never as markup, so that names from data cannot inject any.
(() => {
  "use strict";

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

  const element = (name, properties) => Object.assign(document.createElement(name), properties);

  // tables that are searched by the same field are one list: the first keeps its number of rows
  const prepare = (tables, title) => {
    const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
    const n = tables[0].tBodies[0].rows.length;
    const field = element("input", { type: "search", autocomplete: "off", spellcheck: false });
    const status = element("span", { role: "status" });
    const label = element("label", { className: "search" });
    label.append(element("span", { textContent: title }), field, status);
    tables[0].closest(".box").before(label);

    const announce = (text) => {
      status.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} shown. ${text}`.trim();
    };

    const sortBy = (column, title) => {
      const heads = tables.map((table) => table.tHead.rows[0].cells);
      const isNumber = rows.some((row) => typeof valueOf(row, column) === "number");
      const [first, other] = isNumber ? ["descending", "ascending"] : ["ascending", "descending"];
      const way = heads[0][column].getAttribute("aria-sort") === first ? other : first;
      rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), way === "ascending" ? 1 : -1));
      tables[0].tBodies[0].append(...rows.slice(0, n));
      if (tables.length > 1) tables[1].tBodies[0].append(...rows.slice(n));
      for (const cells of heads) {
        for (const cell of cells) cell.removeAttribute("aria-sort");
        cells[column].setAttribute("aria-sort", way);
      }
      announce(`Sorted by ${title}, ${way}.`);
    };

    for (const table of tables) {
      [...table.tHead.rows[0].cells].forEach((head, column) => {
        const button = element("button", { type: "button", textContent: head.textContent });
        button.addEventListener("click", () => sortBy(column, button.textContent));
        head.replaceChildren(button);
      });
    }

    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        // words are searched; columns of numbers are only sorted
        const words = [...row.cells].filter((cell) => !cell.dataset.v).map((cell) => cell.textContent.toLowerCase());
        row.hidden = !wanted.every((word) => words.join(" ").includes(word));
        // rows that are found are shown
        if (wanted.length && !row.hidden) row.closest("details")?.setAttribute("open", "");
      }
      announce("");
    });
  };

  const searched = [...document.querySelectorAll("table[data-find]")];
  for (const title of new Set(searched.map((table) => table.dataset.find))) {
    prepare(searched.filter((table) => table.dataset.find === title), title);
  }
})();
