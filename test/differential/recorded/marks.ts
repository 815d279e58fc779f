/**
 * Replaces values in requests that the server chose in earlier responses by marks, and records where each value was
 * found.
 */
import { decodeProtobuf, isProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { documentOf, type Learned, type Step } from './script.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

interface Known {
  readonly value: string;
  readonly step: number;
  readonly at: string;
  mark: number | undefined;
}

type Fields = Record<string, unknown>;

export class Marks {
  /** Found values by their text. Only the first response that contains a value is recorded. */
  readonly #texts = new Map<string, Known>();
  readonly #revisions = new Map<string, Known>();
  #latest: Known | undefined;
  #next = 1;

  /** Records the values that the server chose in the response to a step. */
  read(step: number, answer: { readonly bytes: Buffer; readonly type: string }): void {
    this.#walk(documentOf(answer), '', step);
  }

  #walk(value: unknown, at: string, step: number): void {
    if (typeof value !== 'object' || value === null) return;
    const { generateName, name } = value as Fields;
    const generated = typeof generateName === 'string' && generateName !== '' && typeof name === 'string';
    for (const [field, each] of Object.entries(value)) {
      const here = `${at}/${field.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (typeof each === 'object') this.#walk(each, here, step);
      if (typeof each !== 'string') continue;
      const known = { value: each, step, at: here, mark: undefined };
      if (field === 'resourceVersion' && /^[1-9]/.test(each)) {
        if (!this.#revisions.has(each)) this.#revisions.set(each, known);
        if (Number(each) >= Number(this.#latest?.value ?? '0')) this.#latest = this.#revisions.get(each);
      } else if ((UUID.test(each) || field === 'continue' || (field === 'name' && generated)) && each !== '') {
        if (!this.#texts.has(each)) this.#texts.set(each, known);
      }
    }
  }

  #mark(known: Known): number {
    known.mark ??= this.#next++;
    return known.mark;
  }

  #revision(value: string): number | undefined {
    // A revision that occurred only in a watch event is replaced by the mark of the latest one.
    const known = this.#revisions.get(value) ?? this.#latest;
    return known === undefined ? undefined : this.#mark(known);
  }

  #marked(text: string): string {
    let result = text;
    for (const known of this.#texts.values()) {
      const shown = encodeURIComponent(known.value);
      for (const form of new Set([known.value, shown]))
        if (result.includes(form)) result = result.replaceAll(form, `<<${this.#mark(known)}>>`);
    }
    const revised = (whole: string, before: string, value: string): string => {
      const mark = this.#revision(value);
      return mark === undefined ? whole : `${before}<<${mark}>>`;
    };
    return result
      .replaceAll(/(resourceVersion=)([1-9]\d*)/g, revised)
      .replaceAll(/("resourceVersion":\s*")([1-9]\d*)/g, revised)
      .replaceAll(/(\\"resourceVersion\\":\s*\\")([1-9]\d*)/g, revised);
  }

  /** Converts a request to a step of the script. */
  write(request: Pick<Step, 'method' | 'path' | 'headers'>, body: Buffer): Step {
    const step = { ...request, path: this.#marked(request.path) };
    if (body.length === 0) return step;
    if (!isProtobuf(body)) return { ...step, body: this.#marked(body.toString('utf8')) };
    const stands = [...this.#texts.values()]
      .filter(({ value }) => body.includes(value))
      .map((known) => ({ value: known.value, mark: this.#mark(known) }));
    const { metadata } = decodeProtobuf(body) as { metadata?: { resourceVersion?: string } };
    const own = metadata?.resourceVersion;
    const revision = own === undefined || own === '' ? undefined : this.#revision(own);
    return {
      ...step,
      bytes: body.toString('base64'),
      ...(stands.length === 0 ? {} : { stands }),
      ...(revision === undefined ? {} : { revision }),
    };
  }

  /** The steps, each with the locations of the marked values in its response. */
  finish(steps: readonly Step[]): Step[] {
    const learned = new Map<number, Learned[]>();
    for (const { mark, step, at } of [...this.#texts.values(), ...this.#revisions.values()])
      if (mark !== undefined) learned.set(step, [...(learned.get(step) ?? []), { mark, at }]);
    return steps.map((step, index) => {
      const learns = learned.get(index)?.toSorted((a, b) => a.mark - b.mark);
      return learns === undefined ? step : { ...step, learns };
    });
  }
}
