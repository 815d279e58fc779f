/**
 * `$(NAME)` references, and what everything that a pod refers to may amount to. Source:
 * third_party/forked/golang/expansion.
 */

/** Environment, command and arguments of one container. The kernel's own limit for them is 2 MiB. */
export const MAX_CONTAINER_BYTES = 1024 * 1024;
/** Files of the config map, secret, downward API and projected volumes of one pod. */
export const MAX_VOLUME_BYTES = 16 * 1024 * 1024;
/** PATH_MAX of Linux. */
export const MAX_PATH_BYTES = 4096;

/** Counts what is about to be built, so that what exceeds the limit never is. */
export class ExpansionBudget {
  private readonly what: string;
  private readonly limit: number;
  private used = 0;

  /** `what` names the sum in the error: `environment, command and args`. */
  constructor(what: string, limit: number) {
    this.what = what;
    this.limit = limit;
  }

  /** Throws an Error that names the limit. */
  take(bytes: number): void {
    this.used += bytes;
    if (this.used > this.limit) {
      throw new Error(
        `${this.what}: more than ${this.limit} bytes once references are expanded; refer to less, or to smaller values`,
      );
    }
  }

  /** Of a text as it is written in a container's configuration, where control characters are longer. Returns it. */
  text(text: string): string {
    // Cheap for what is too large in any case.
    if (text.length > this.limit) this.take(text.length);
    this.take(Buffer.byteLength(JSON.stringify(text)));
    return text;
  }
}

/**
 * `$(NAME)` becomes its value where there is one and stays otherwise; `$$` is a dollar. Linear in the text and in the
 * result, whose parts are taken from `budget` as they are found. Throws when it is exceeded.
 */
export function expand(text: string, lookup: (name: string) => string | undefined, budget: ExpansionBudget): string {
  const parts: string[] = [];
  const emit = (part: string): void => {
    if (part !== '') parts.push(budget.text(part));
  };
  let start = 0;
  for (let dollar = text.indexOf('$'); dollar >= 0; dollar = text.indexOf('$', start)) {
    const follower = text[dollar + 1];
    const close = follower === '(' ? text.indexOf(')', dollar + 2) : -1;
    if (follower === '$') {
      emit(text.slice(start, dollar + 1));
      start = dollar + 2;
    } else if (close >= 0) {
      emit(text.slice(start, dollar));
      emit(lookup(text.slice(dollar + 2, close)) ?? text.slice(dollar, close + 1));
      start = close + 1;
    } else if (follower === '(') {
      // No reference is closed any more: what follows holds only `$$`.
      emit(text.slice(start).replaceAll('$$', () => '$'));
      return parts.join('');
    } else {
      emit(text.slice(start, dollar + 1));
      start = dollar + 1;
    }
  }
  emit(text.slice(start));
  return parts.join('');
}
