/**
 * Work in steps, each about one pass over a document. For large documents the caller yields to other work between
 * steps; otherwise it runs all steps at once.
 */
export type Steps<T> = Generator<undefined, T>;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
