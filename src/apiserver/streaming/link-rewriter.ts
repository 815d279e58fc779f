/**
 * Rewrites host-absolute links in HTML pages of proxied pods and services, so that they lead through the proxy. The
 * attributes that contain links are listed in the attribute tables of HTML 4.01 and HTML. Source:
 * k8s.io/apimachinery/pkg/util/proxy/transport.go.
 */
import { Transform, type TransformCallback } from 'node:stream';

const LINKS: ReadonlyMap<string, readonly string[]> = new Map([
  ['a', ['href']],
  ['applet', ['codebase']],
  ['area', ['href']],
  ['audio', ['src']],
  ['base', ['href']],
  ['blockquote', ['cite']],
  ['body', ['background']],
  ['button', ['formaction']],
  ['command', ['icon']],
  ['del', ['cite']],
  ['embed', ['src']],
  ['form', ['action']],
  ['frame', ['longdesc', 'src']],
  ['head', ['profile']],
  ['html', ['manifest']],
  ['iframe', ['longdesc', 'src']],
  ['img', ['longdesc', 'src', 'usemap']],
  ['input', ['src', 'usemap', 'formaction']],
  ['ins', ['cite']],
  ['link', ['href']],
  ['object', ['classid', 'codebase', 'data', 'usemap']],
  ['q', ['cite']],
  ['script', ['src']],
  ['source', ['src']],
  ['video', ['poster', 'src']],
]);
/** Elements whose content is raw text. */
const RAW: ReadonlySet<string> = new Set([
  'script',
  'style',
  'textarea',
  'title',
  'xmp',
  'iframe',
  'noembed',
  'noframes',
]);
/** Longer tags are not rewritten. */
const MAX_TAG = 64 * 1024;
const COMMENT = '<!--';

export interface ProxiedPage {
  /** Path of the proxy below which the page is served, without a trailing slash. */
  readonly prefix: string;
  /** Names of the backend, with ports. Links to them are rewritten. */
  readonly hosts: readonly string[];
}

/** The link as it leads through the proxy. Relative links and links to other hosts stay unchanged. */
export function proxiedLink(link: string, { prefix, hosts }: ProxiedPage): string {
  const absolute = /^(?:https?:)?\/\/([^/?#]*)/i.exec(link);
  let path = link;
  if (absolute !== null) {
    if (!hosts.includes(absolute[1] ?? '')) return link;
    path = link.slice(absolute[0].length);
    if (!path.startsWith('/')) path = `/${path}`;
  }
  if (!path.startsWith('/') || path === prefix || path.startsWith(`${prefix}/`)) return path;
  return prefix + path;
}

/** Rewrites the links of a page while it streams. All other bytes stay unchanged, whatever the encoding is. */
export class LinkRewriter extends Transform {
  readonly #page: ProxiedPage;
  #pending = '';
  /** Text that ends the current comment or raw text element. */
  #until: string | undefined;

  constructor(page: ProxiedPage) {
    super();
    this.#page = page;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, Buffer.from(this.#advance(this.#pending + chunk.toString('latin1')), 'latin1'));
  }

  override _flush(done: TransformCallback): void {
    done(null, Buffer.from(this.#pending, 'latin1'));
    this.#pending = '';
  }

  /** Returns the processed part of `text`. The rest waits for more input. */
  #advance(text: string): string {
    let ready = '';
    let at = 0;
    const wait = (from: number): string => {
      this.#pending = text.slice(from);
      return ready;
    };
    for (;;) {
      if (this.#until !== undefined) {
        const end = indexOfIgnoringCase(text, this.#until, at);
        if (end < 0) {
          const kept = Math.max(at, text.length - this.#until.length + 1);
          ready += text.slice(at, kept);
          return wait(kept);
        }
        ready += text.slice(at, end + this.#until.length);
        at = end + this.#until.length;
        this.#until = undefined;
      }
      const open = text.indexOf('<', at);
      ready += text.slice(at, open < 0 ? text.length : open);
      if (open < 0) return wait(text.length);
      at = open;
      if (text.startsWith(COMMENT, at)) {
        ready += COMMENT;
        at += COMMENT.length;
        this.#until = '-->';
        continue;
      }
      if (COMMENT.startsWith(text.slice(at))) return wait(at);
      if (!isLetter(text.charCodeAt(at + 1))) {
        ready += '<';
        at += 1;
        continue;
      }
      const tag = readTag(text, at);
      if (tag === undefined) {
        if (text.length - at < MAX_TAG) return wait(at);
        ready += text.slice(at);
        return wait(text.length);
      }
      ready += this.#rewritten(tag, text, at);
      at = tag.end;
      if (RAW.has(tag.name)) this.#until = `</${tag.name}`;
    }
  }

  #rewritten(tag: Tag, text: string, start: number): string {
    const names = LINKS.get(tag.name);
    let result = '';
    let at = start;
    for (const { name, from, to } of tag.attributes) {
      if (names?.includes(name) !== true) continue;
      result += text.slice(at, from) + proxiedLink(text.slice(from, to), this.#page);
      at = to;
    }
    return result + text.slice(at, tag.end);
  }
}

interface Tag {
  readonly name: string;
  readonly attributes: readonly { readonly name: string; readonly from: number; readonly to: number }[];
  readonly end: number;
}

const isLetter = (code: number): boolean => (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);
const QUOTES = '"\'';

/** The tag that begins at `start`. Undefined if its end has not arrived yet. */
function readTag(text: string, start: number): Tag | undefined {
  const attributes: { name: string; from: number; to: number }[] = [];
  const until = (from: number, ends: string): number => {
    let at = from;
    while (at < text.length && !isSpace(text.charCodeAt(at)) && !ends.includes(text.charAt(at))) at += 1;
    return at;
  };
  const spaces = (from: number): number => {
    let at = from;
    while (isSpace(text.charCodeAt(at))) at += 1;
    return at;
  };
  let at = until(start + 1, '/>');
  const name = text.slice(start + 1, at).toLowerCase();
  for (;;) {
    at = spaces(at);
    if (at >= text.length) return undefined;
    if (text[at] === '>') return { name, attributes, end: at + 1 };
    const begin = at;
    // An attribute name may begin with "=", but not with a slash.
    at = text[at] === '/' ? at + 1 : until(at + 1, '=/>');
    const end = at;
    at = spaces(at);
    if (text[at] !== '=' || text[begin] === '/') continue;
    at = spaces(at + 1);
    if (at >= text.length) return undefined;
    const quoted = QUOTES.includes(text.charAt(at));
    const from = quoted ? at + 1 : at;
    const to = quoted ? text.indexOf(text.charAt(at), from) : until(from, '>');
    if (to < 0 || to >= text.length) return undefined;
    attributes.push({ name: text.slice(begin, end).toLowerCase(), from, to });
    at = quoted ? to + 1 : to;
  }
}

function indexOfIgnoringCase(text: string, wanted: string, from: number): number {
  for (let at = text.indexOf(wanted.charAt(0), from); at >= 0; at = text.indexOf(wanted.charAt(0), at + 1)) {
    if (text.slice(at, at + wanted.length).toLowerCase() === wanted) return at;
  }
  return -1;
}
