import { DecoratorHandler, type Dispatcher } from 'undici';
import type { WriteFence } from './write-fence.ts';

class CheckedHandler extends DecoratorHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #fence: WriteFence;

  constructor(handler: Dispatcher.DispatchHandler, fence: WriteFence) {
    super(handler);
    this.#handler = handler;
    this.#fence = fence;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: object): void {
    this.#handler.onRequestStart?.(controller, context);
    try {
      this.#fence.check();
    } catch (error) {
      controller.abort(error instanceof Error ? error : new Error(String(error)));
    }
  }
}

/**
 * Checks the fence again when a request is written to the connection. The process may have been suspended while the
 * request was queued.
 */
export function checkedAtSend(dispatcher: Dispatcher, fence: WriteFence): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => dispatch(options, new CheckedHandler(handler, fence)));
}
