"use strict";
// Loads the page again whenever the runs have written something new; its state is in its address.
(() => {
  const place = document.querySelector(".live");
  const { version } = place.dataset;
  const following = place.textContent;
  // Not in the middle of a drag or of typing, and not while nobody looks.
  let pressed = false;
  addEventListener("pointerdown", () => { pressed = true; });
  addEventListener("pointerup", () => { pressed = false; });
  let typed;
  const busy = () => {
    const before = typed;
    typed = document.getElementById("filter")?.value;
    return pressed || document.hidden || typed !== before;
  };
  busy();
  const look = async () => {
    let pause = 2000;
    try {
      const answer = await fetch("/version", { cache: "no-store" });
      if ((await answer.text()) !== version && !busy()) return location.reload();
      // How far all nodes of a run among peers are changes more often than the rest.
      const nodes = document.getElementById("nodes");
      if (nodes) nodes.innerHTML = await (await fetch("/nodes", { cache: "no-store" })).text();
      place.classList.remove("over");
      place.textContent = following;
    } catch {
      place.classList.add("over");
      place.textContent = "The server has ended: this page shows what it served last.";
      pause = 5000;
    }
    setTimeout(look, pause);
  };
  setTimeout(look, 2000);
})();
