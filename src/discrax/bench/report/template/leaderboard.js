(function () {
  "use strict";
  var root = document.documentElement;
  var data = JSON.parse(document.getElementById("data").textContent);
  var form = document.getElementById("filters");
  var BOARD = 0, PAPER = 1, FAMILY = 2, NAME = 3, METRIC = 4;
  var entries = data.entries.map(function (e) {
    return { task: e[0], sampler: data.samplers[e[1]], value: e[2], error: e[3], seeds: e[4], rank: e[5], status: e[6] };
  });

  function element(name, text, kind) {
    var made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  function number(x) {
    if (x === null) return "-";
    var size = Math.abs(x);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return x.toExponential(2);
    if (size >= 1000) return Math.round(x).toLocaleString("en");
    return x.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
  }
  function unique(list) { return list.filter(function (x, place) { return list.indexOf(x) === place; }); }
  function offer(name, values, all) {
    var select = form.elements[name], chosen = select.value;
    select.textContent = "";
    (all ? [all] : []).concat(values).forEach(function (value) { select.appendChild(element("option", value)); });
    select.value = values.indexOf(chosen) >= 0 ? chosen : select.options[0].value;
  }
  function of_board() {
    return data.tasks.map(function (task, id) { return { id: id, task: task }; }).filter(function (each) {
      return each.task[BOARD] === form.elements.board.value;
    });
  }
  function shown_tasks() {
    var paper = form.elements.paper.value, family = form.elements.family.value;
    return of_board().filter(function (each) {
      return (paper === "all" || each.task[PAPER] === paper) && (family === "all" || each.task[FAMILY] === family);
    });
  }
  function is_wanted(sampler) {
    var words = form.elements.sampler.value.toLowerCase().split(",").map(function (word) { return word.trim(); });
    words = words.filter(Boolean);
    return !words.length || words.some(function (word) { return sampler.toLowerCase().indexOf(word) >= 0; });
  }
  function shown_entries() {
    var ids = shown_tasks().map(function (each) { return each.id; });
    return entries.filter(function (e) { return ids.indexOf(e.task) >= 0; });
  }

  // Ranks are among all samplers of a task, whichever of them are shown.
  function overall(found) {
    var ranks = {};
    found.forEach(function (e) { if (e.rank !== null) (ranks[e.sampler] = ranks[e.sampler] || []).push(e.rank); });
    var most = Math.max.apply(null, Object.keys(ranks).map(function (name) { return ranks[name].length; }));
    return Object.keys(ranks).map(function (name) {
      var mine = ranks[name], sum = mine.reduce(function (a, b) { return a + b; }, 0);
      var first = mine.filter(function (rank) { return rank === 1; }).length;
      return { sampler: name, mean: sum / mine.length, tasks: mine.length, first: first, few: 2 * mine.length < most };
    }).sort(function (a, b) { return a.few - b.few || a.mean - b.mean || (a.sampler < b.sampler ? -1 : 1); });
  }

  function show_overall(order, num_tasks) {
    var body = document.querySelector("#overall tbody");
    body.textContent = "";
    order.forEach(function (each) {
      var row = element("tr", undefined, each.few ? "few" : "");
      var head = element("th", each.sampler);
      head.scope = "row";
      row.appendChild(head);
      [each.mean.toFixed(2), each.tasks + " of " + num_tasks, each.first || "-"].forEach(function (text) {
        row.appendChild(element("td", text));
      });
      body.appendChild(row);
    });
  }

  function cell(e) {
    if (!e) return element("td", "");
    var kind = e.rank === 1 ? "first" : e.status === "too short" ? "short" : e.status === "failed" ? "failed" : "";
    var made = element("td", undefined, kind);
    made.appendChild(element("b", e.rank === null ? e.status : e.rank));
    if (e.value !== null) made.appendChild(element("span", number(e.value) + (e.error === null ? "" : " ± " + number(e.error))));
    made.title = e.seeds + (e.seeds === 1 ? " seed" : " seeds") + (e.error === null ? ", no error known" : "");
    return made;
  }

  function show_tasks(tasks, found, samplers) {
    var head = document.querySelector("#tasks thead"), body = document.querySelector("#tasks tbody");
    head.textContent = body.textContent = "";
    var line = head.appendChild(element("tr"));
    ["task"].concat(samplers).forEach(function (name) { line.appendChild(element("th", name)).scope = "col"; });
    tasks.forEach(function (each) {
      var row = body.appendChild(element("tr")), name = row.appendChild(element("th", each.task[NAME] + " "));
      name.scope = "row";
      name.appendChild(element("small", each.task[PAPER] + ", " + each.task[METRIC]));
      samplers.forEach(function (sampler) {
        row.appendChild(cell(found.find(function (e) { return e.task === each.id && e.sampler === sampler; })));
      });
    });
  }

  function show() {
    offer("paper", unique(of_board().map(function (each) { return each.task[PAPER]; })), "all");
    var paper = form.elements.paper.value;
    var inside = of_board().filter(function (each) { return paper === "all" || each.task[PAPER] === paper; });
    offer("family", unique(inside.map(function (each) { return each.task[FAMILY]; })), "all");
    var tasks = shown_tasks(), found = shown_entries();
    var order = overall(found).filter(function (each) { return is_wanted(each.sampler); });
    var names = order.map(function (each) { return each.sampler; });
    names = unique(names.concat(found.map(function (e) { return e.sampler; }).filter(is_wanted)));
    show_overall(order, tasks.length);
    show_tasks(tasks, found, names);
  }

  function quoted(value) {
    var text = value === null ? "" : String(value);
    return /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }
  function csv() {
    var lines = [["board", "paper", "family", "task", "sampler", "metric", "status", "value", "error", "seeds", "rank"]];
    shown_entries().filter(function (e) { return is_wanted(e.sampler); }).forEach(function (e) {
      var t = data.tasks[e.task];
      lines.push([t[BOARD], t[PAPER], t[FAMILY], t[NAME], e.sampler, t[METRIC], e.status, e.value, e.error, e.seeds, e.rank]);
    });
    return lines.map(function (line) { return line.map(quoted).join(","); }).join("\n") + "\n";
  }
  function rows() {
    var bytes = Uint8Array.from(atob(document.getElementById("packed").textContent), function (c) { return c.charCodeAt(0); });
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }
  function save(link, text) {
    var url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    var made = element("a");
    made.href = url;
    made.download = link.download;
    made.click();
    setTimeout(function () { URL.revokeObjectURL(url); }, 10000);
  }
  document.getElementById("shown").addEventListener("click", function (event) {
    event.preventDefault();
    save(event.target, csv());
  });
  document.getElementById("rows").addEventListener("click", function (event) {
    event.preventDefault();
    rows().then(function (text) { save(event.target, text); });
  });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  form.addEventListener("input", show);

  offer("board", data.boards.filter(function (name) { return data.tasks.some(function (t) { return t[BOARD] === name; }); }));
  data.samplers.forEach(function (name) { document.getElementById("samplers").appendChild(element("option", name)); });
  show();

  // With #selftest the page tries its own filters and downloads and says what came of it.
  function selftest() {
    var failed = [];
    function check(is, what) { if (!is) failed.push(what); }
    function heads() { return Array.from(document.querySelectorAll("#tasks thead th")).length - 1; }
    function lines() { return document.querySelectorAll("#tasks tbody tr").length; }
    function choose(name, value) {
      form.elements[name].value = value;
      form.dispatchEvent(new Event("input"));
    }
    Array.from(form.elements.board.options).forEach(function (option) {
      choose("board", option.value);
      check(lines() === of_board().length, "tasks of " + option.value);
      check(csv().split("\n").length === shown_entries().length + 2, "csv of " + option.value);
    });
    choose("board", form.elements.board.options[0].value);
    var all = heads(), some = document.querySelector("#overall tbody th").textContent;
    choose("sampler", some);
    check(heads() >= 1 && heads() < all, "sampler");
    choose("sampler", "");
    Array.from(form.elements.family.options).slice(1).forEach(function (option) {
      choose("family", option.value);
      check(shown_tasks().every(function (each) { return each.task[FAMILY] === option.value; }), "family");
    });
    choose("family", "all");
    check(heads() === all, "back");
    rows().then(function (text) {
      root.dataset.rows = String(text.split("\n").length - 2);
      root.dataset.selftest = failed.length ? "failed: " + failed.join(", ") : "ok";
    });
  }
  if (location.hash === "#selftest" && data.tasks.length) selftest();
})();
