// How text and times are shown.

const svgNS = "http://www.w3.org/2000/svg";

// el makes an element; one whose name begins with svg: is a drawing's.
export function el(name, attributes = {}, ...children) {
  const node = name.startsWith("svg:") ? document.createElementNS(svgNS, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// Invisible characters can make a name look like another one, or turn the text around it.
const invisible = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\ufffd]|[^\S ]/u;

const code = (c) => "U+" + c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");

// plain is a text where no marks can stand, such as in a tooltip.
export const plain = (text) => [...text].map((c) => (invisible.test(c) ? `‹${code(c)}›` : c)).join("");

// show is a text from the lock service. It is isolated from what surrounds it, and nothing in it is invisible.
export function show(text) {
  const out = el("bdi");
  let run = "";
  for (const c of text) {
    if (invisible.test(c)) {
      out.append(run, el("span", { class: "esc" }, code(c)));
      run = "";
    } else {
      run += c;
    }
  }
  out.append(run);
  return out;
}

// short is a duration of ms in a few characters.
export function short(ms, fine = false) {
  const s = ms / 1000;
  if (s < (fine ? 100 : 9.95)) return (fine || s < 9.95 ? s.toFixed(1) : s.toFixed(0)) + " s";
  if (s < 100) return s.toFixed(0) + " s";
  const m = s / 60;
  if (m < 100) return m.toFixed(0) + " min";
  if (m < 48 * 60) return (m / 60).toFixed(0) + " h";
  return (m / 1440).toFixed(0) + " d";
}

// span is a duration that may be far below a second.
export function span(ms) {
  return ms < 10 ? ms.toFixed(1) + " ms" : ms < 1000 ? ms.toFixed(0) + " ms" : short(ms);
}
