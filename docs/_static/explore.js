// Sliders of the page on plans: every number is read from the table in the page, none is computed.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.explore");
  const table = JSON.parse(document.getElementById("explore-data").textContent);
  const slider = (name) => form.querySelector(`#explore-${name}`);
  const put = (name, text) => { form.querySelector(`.${name}`).textContent = text; };
  const percent = (share) => `${+(100 * share).toFixed(1)}%`;
  const count = (n) => n.toLocaleString("en-US");
  const shown = {
    mass: (place) => `${percent(table.masses[place])} of people`,
    rows: (place) => `${count(table.rows[place])} rows`,
    error: (place) => `${+(100 * table.errors[place]).toFixed(1)} points`,
  };

  // the narrowest interval without a draw whose floor is as high, or else the highest floor
  const withoutDraw = (floors, floor) => {
    const found = floors.findIndex((one) => one >= floor);
    return found >= 0 ? found : floors.length - 1;
  };

  const band = (name, from, to) => {
    const style = form.querySelector(`.${name}`).style;
    style.left = `${from}%`;
    style.width = `${to - from}%`;
  };

  const nothing = (people, rows) => {
    put("sentence", `This error cannot be certified for every group of at least ${people} with ${rows}. `
      + "Choose more rows, a larger group or a larger error.");
    for (const name of ["floor", "ceiling", "wider", "price", "alpha"]) put(name, "none");
    band("drawn", 0, 0);
  };

  const certified = (cell, people) => {
    const [alpha, price, wider, floor, ceiling] = cell;
    const needed = wider > 0 ? "" : " No draw is needed for this error.";
    const upper = ceiling < 100 ? `and at most ${ceiling}% ` : "";
    put("sentence", `In every group of at least ${people}, 80% intervals cover at least ${floor}% `
      + `${upper}of outcomes, and are at most ${wider}% wider than without a draw.${needed}`);
    put("floor", `${floor}%`);
    put("ceiling", ceiling < 100 ? `${ceiling}%` : "none (100%)");
    put("wider", `${wider}% wider`);
    put("price", `${price.toFixed(2)} nats`);
    put("alpha", `${alpha}`);
    band("drawn", floor, ceiling);
  };

  const beside = (floors, floor) => {
    const place = withoutDraw(floors, floor);
    const level = percent(table.levels[place]);
    put("wider-name", `${level} intervals without a draw`);
    band("floor-only", floors[place], 100);
    put("without", floors[place] > 0
      ? `Without a draw, ${level} intervals cover at least ${floors[place]}% in every such group and are `
        + `${table.level_widths[place]}% wider. They have no ceiling.`
      : "Without a draw, no interval up to the level of 99% has a floor above 0%.");
  };

  const update = () => {
    const place = {};
    for (const name of ["mass", "rows", "error"]) {
      place[name] = Number(slider(name).value);
      const text = shown[name](place[name]);
      slider(name).setAttribute("aria-valuetext", text);
      form.querySelector(`output[for="explore-${name}"]`).textContent = text;
    }
    const cell = table.certificates[place.mass][place.error][place.rows];
    if (cell) certified(cell, shown.mass(place.mass));
    else nothing(shown.mass(place.mass), shown.rows(place.rows));
    beside(table.level_floors[place.mass][place.rows], cell ? cell[3] : 0);
    put("command", `evenhand plan --goal ${table.errors[place.error]} `
      + `--group-mass ${table.masses[place.mass]} --rows ${table.rows[place.rows]}`);
  };

  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
});
