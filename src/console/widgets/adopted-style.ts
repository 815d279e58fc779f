/**
 * Element that replaces a `<style>` element of a library, because the content security policy forbids `<style>`. The
 * text of the element is applied as a constructed style sheet.
 */
function styleStandIn(): HTMLElement {
  const standIn = document.createElement('span');
  standIn.hidden = true;
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets.push(sheet);
  new MutationObserver(() => sheet.replaceSync(standIn.textContent ?? '')).observe(standIn, {
    childList: true,
    characterData: true,
    subtree: true,
  });
  const remove = standIn.remove.bind(standIn);
  standIn.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    remove();
  };
  return standIn;
}

/** Proxy of the document whose `createElement` returns stand-ins for style elements. */
export const documentWithoutStyles = (): Document =>
  new Proxy(document, {
    get(target, name) {
      if (name === 'createElement')
        return (tag: string) => (tag === 'style' ? styleStandIn() : document.createElement(tag));
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });

/** Runs code of a library that creates style elements with the global document. The code gets stand-ins instead. */
export function withStandIns(run: () => void): void {
  const create = document.createElement.bind(document);
  const value = (tag: string): HTMLElement => {
    if (tag !== 'style') return create(tag);
    Reflect.deleteProperty(document, 'createElement');
    try {
      return styleStandIn();
    } finally {
      replace();
    }
  };
  const replace = (): void => void Object.defineProperty(document, 'createElement', { configurable: true, value });
  replace();
  try {
    run();
  } finally {
    Reflect.deleteProperty(document, 'createElement');
  }
}
