/**
 * Work that takes a step at a time, each about one pass over a document. Who has a document of a megabyte lets others
 * have their turn between two steps; for all others the steps are taken at once.
 */
export type Steps<T> = Generator<undefined, T>;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
