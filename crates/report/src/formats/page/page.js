'use strict';
// Shows size, value and interval of the point nearest to the pointer.
for (const svg of document.querySelectorAll('.figure svg')) {
  const box = svg.parentElement;
  const points = [];
  for (const group of svg.querySelectorAll('.series')) {
    for (const [x, y, size, value, interval] of JSON.parse(group.dataset.tips)) {
      points.push({ x, y, size, value, interval, name: group.dataset.name });
    }
  }
  const halo = document.createElementNS(svg.namespaceURI, 'circle');
  halo.setAttribute('class', 'halo');
  halo.setAttribute('r', '7');
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.hidden = true;
  box.append(tip);
  const hide = () => { tip.hidden = true; halo.remove(); };
  const line = (text, tag) => {
    const part = document.createElement(tag);
    part.textContent = text;
    tip.append(part);
  };
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('pointermove', (event) => {
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    const frame = svg.getBoundingClientRect();
    const at = { x: (event.clientX - frame.left) / scale, y: (event.clientY - frame.top) / scale };
    let best = null;
    let nearest = 60;
    for (const point of points) {
      const distance = Math.hypot(point.x - at.x, point.y - at.y);
      if (distance < nearest) { nearest = distance; best = point; }
    }
    if (!best) { hide(); return; }
    halo.setAttribute('cx', best.x);
    halo.setAttribute('cy', best.y);
    svg.append(halo);
    tip.replaceChildren();
    line(best.name, 'b');
    line(best.size + ': ' + best.value, 'div');
    if (best.interval) { line(best.interval, 'div'); }
    tip.hidden = false;
    const room = box.clientWidth - tip.offsetWidth - 8;
    const left = best.x * scale + 16;
    tip.style.left = Math.max(4, left > room ? best.x * scale - tip.offsetWidth - 12 : left) + 'px';
    tip.style.top = Math.max(4, best.y * scale - tip.offsetHeight - 10) + 'px';
  });
}
// Unfolds all tables for printing.
addEventListener('beforeprint', () => {
  for (const part of document.querySelectorAll('details')) { part.open = true; }
});
