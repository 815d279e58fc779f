/** Resolves the runtime handler of a pod's RuntimeClass. Source: KEP-585; pkg/kubelet/runtimeclass. */
import type { Pod } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import type { ApiClient } from '../../client/types.ts';

export class RuntimeClasses {
  #client: ApiClient | undefined;
  /** Handlers by class name. The handler of a RuntimeClass is immutable. */
  readonly #known = new Map<string, string>();

  connect(client: ApiClient): void {
    this.#client = client;
  }

  /** Returns undefined for the default handler. Throws an Error with upstream's text when the class cannot be read. */
  async handlerOf(pod: Pod): Promise<string | undefined> {
    const name = pod.spec?.runtimeClassName ?? '';
    if (name === '') return undefined;
    if (this.#client === undefined) return this.#remembered(name, 'the API server is not available yet');
    try {
      const { handler } = await this.#client.resource(resources.runtimeClasses).get(name);
      this.#known.set(name, handler);
      return handler;
    } catch (error) {
      if (!isApiError(error, 'NotFound')) return this.#remembered(name, String(error));
      this.#known.delete(name);
      throw new Error(`failed to get runtime class: RuntimeClass ${JSON.stringify(name)} not found`, { cause: error });
    }
  }

  #remembered(name: string, problem: string): string {
    const handler = this.#known.get(name);
    if (handler === undefined) throw new Error(`failed to get runtime class ${JSON.stringify(name)}: ${problem}`);
    return handler;
  }
}
