// Every visible text's contrast with the ground that it stands on, by WCAG's formula: [[ratio, element]].
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const over = (ground, colour) => {
    for (const paint of [`rgb(${ground.join()})`, colour]) {
      canvas.fillStyle = paint;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const ground = (element) => element
    ? over(ground(element.parentElement), getComputedStyle(element).backgroundColor)
    : [255, 255, 255];
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("svg, script, button:disabled")) continue;
    const base = ground(element);
    const both = [light(base), light(over(base, getComputedStyle(element).color))];
    found.push([(Math.max(...both) + 0.05) / (Math.min(...both) + 0.05), element.outerHTML.slice(0, 80)]);
  }
  return found;
}
