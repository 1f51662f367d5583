(function () {
  "use strict";
  var root = document.documentElement;
  var all = function (what, inside) { return Array.prototype.slice.call((inside || document).querySelectorAll(what)); };

  function show(view) {
    root.dataset.view = view;
    all("[data-set]").forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.dataset.set === view));
    });
  }

  function value(row, column, view) {
    var data = all("td", row)[column].dataset;
    var text = view === "ratio" && data.ratio !== undefined ? data.ratio : data.ours;
    return text === undefined || text === "" ? NaN : Number(text);
  }

  // A header's clicks: descending, ascending, as it was. What has no number stays last.
  function sort(head) {
    var table = head.closest("table"), body = table.tBodies[0], rows = all("tr", body);
    var column = Number(head.dataset.column), view = root.dataset.view;
    var next = { descending: "ascending", ascending: "none" }[head.getAttribute("aria-sort")] || "descending";
    all("th[aria-sort]", table).forEach(function (other) { other.removeAttribute("aria-sort"); });
    if (next !== "none") head.setAttribute("aria-sort", next);
    var sign = next === "ascending" ? 1 : -1;
    rows.sort(function (a, b) {
      if (next === "none") return a.dataset.place - b.dataset.place;
      var x = value(a, column, view), y = value(b, column, view);
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.dataset.place - b.dataset.place;
      return sign * (x - y) || a.dataset.place - b.dataset.place;
    });
    rows.forEach(function (row) { body.appendChild(row); });
  }

  all("table tbody").forEach(function (body) {
    all("tr", body).forEach(function (row, place) { row.dataset.place = place; });
  });
  all("th[data-column] button").forEach(function (button) {
    button.addEventListener("click", function () { sort(button.parentElement); });
  });
  all("[data-set]").forEach(function (button) {
    button.addEventListener("click", function () { show(button.dataset.set); });
  });

  function count() {
    root.dataset.plots = String(all("figure.plot svg").filter(function (svg) {
      var box = svg.getBoundingClientRect();
      return box.width > 100 && box.height > 100;
    }).length);
  }

  // With #selftest the page tries its own toggle and sorting and says what came of it.
  function selftest() {
    var failed = [];
    function check(is, what) { if (!is) failed.push(what); }
    function seen(what) {
      return all("table.grid " + what).some(function (item) { return item.getClientRects().length > 0; });
    }
    document.querySelector('[data-set="ratio"]').click();
    check(seen("td b.in-ratio") && !seen("td b.in-ours"), "toggle to ratio");
    document.querySelector('[data-set="ours"]').click();
    check(seen("td b.in-ours") && !seen("td b.in-ratio"), "toggle to ours");
    all("table.grid").forEach(function (table) {
      var button = table.querySelector("th[data-column] button"), body = table.tBodies[0];
      function order() { return all("tr", body).map(function (row) { return row.dataset.place; }).join(); }
      function numbers() {
        var found = all("tr", body).map(function (row) { return value(row, 0, "ours"); });
        return found.filter(function (x) { return !isNaN(x); });
      }
      function is_sorted(sign) {
        return numbers().every(function (x, place, list) { return place === 0 || sign * (x - list[place - 1]) >= 0; });
      }
      var before = order();
      button.click();
      check(is_sorted(-1), "sort down");
      button.click();
      check(is_sorted(1), "sort up");
      button.click();
      check(order() === before, "sort back");
    });
    root.dataset.selftest = failed.length ? "failed: " + failed.join(", ") : "ok";
  }

  window.addEventListener("load", function () {
    count();
    if (location.hash === "#selftest") selftest();
  });
})();
