/**
 * Work in steps. Each step takes about as long as one pass over a small document. The caller can run other work between
 * the steps of a large document, or run all steps at once.
 */
export type Steps<T> = Generator<undefined, T>;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
