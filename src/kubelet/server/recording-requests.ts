/** Recordings of this node's rigs. The API server has authorized the request and resolved the rig. */

import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { RigHost } from '../../rigs/rig-host-port.ts';
import { HttpError } from './http-error.ts';
import type { KubeletResponse } from './port.ts';
import type { Route } from './routes.ts';
import { sendFile, sendPrivateJson } from './send-file.ts';

/** Maximum number of concurrent requests. */
const MAX_REQUESTS = 4;

export interface RecordingRequestsOptions {
  readonly devices: { readonly rigHost: RigHost | undefined } | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export class RecordingRequests {
  readonly #options: RecordingRequestsOptions;
  #active = 0;

  constructor(options: RecordingRequestsOptions) {
    this.#options = options;
  }

  /**
   * Sends the list of recordings, or the recording that the query names. Throws HttpErrors before a response was sent.
   */
  async serve({ rig = '', query, user = '' }: Route, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const { devices, clock, log } = this.#options;
    const host = devices?.rigHost;
    if (host === undefined) throw new HttpError(404, 'this node has no rigs');
    if (this.#active >= MAX_REQUESTS)
      throw new HttpError(429, `this node sends at most ${MAX_REQUESTS} recordings at once; try again later`);
    this.#active += 1;
    try {
      const file = query.get('file');
      if (file === null) {
        sendPrivateJson(response, { items: await host.recordings(rig) });
        return;
      }
      const recording = await host.openRecording(rig, file);
      log.info('recording requested', { user, rig, file: recording.name });
      if (signal.aborted) recording.close();
      else await sendFile(response, recording, clock, signal);
    } catch (error) {
      if (error instanceof CodedError && error.code === 'not-found') throw new HttpError(404, error.message);
      throw error;
    } finally {
      this.#active -= 1;
    }
  }
}
