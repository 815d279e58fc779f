import { request as httpRequest } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { createSecureContext } from 'node:tls';
import { type HttpAnswer, MAX_PROBE_OUTPUT_BYTES } from '../../probes/port.ts';

const MAX_TLS_SESSIONS = 256;
/**
 * Each probe uses a new connection that resumes the previous TLS session, which saves both sides the certificate
 * exchange. Certificates are not verified, so no authority is loaded.
 */
const agent = new Agent({
  keepAlive: false,
  maxCachedSessions: MAX_TLS_SESSIONS,
  secureContext: createSecureContext({ ca: [] }),
});

/** Sends the GET of an HTTP probe (`ProbeNetwork.httpGet` in kubelet/probes/port.ts). */
export function httpGet(url: URL, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const request =
      url.protocol === 'https:'
        ? httpsRequest(url, { headers, signal, agent, rejectUnauthorized: false })
        : httpRequest(url, { headers, signal, agent: false });
    request.on('error', (error) =>
      reject(
        new Error(
          signal.aborted
            ? `Get ${JSON.stringify(url.href)}: context deadline exceeded (Client.Timeout exceeded while awaiting headers)`
            : `Get ${JSON.stringify(url.href)}: ${error.message}`,
          { cause: error },
        ),
      ),
    );
    // Without a listener for `upgrade`, the request would neither fail nor end, even if its signal aborts.
    request.once('upgrade', (response, socket) => {
      socket.on('error', () => {}).destroy();
      resolve({ code: response.statusCode ?? 0, location: undefined, body: '' });
    });
    request.once('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        if (body.length < MAX_PROBE_OUTPUT_BYTES) body += chunk;
        else response.destroy();
      });
      response.once('error', reject);
      response.once('close', () =>
        resolve({
          code: response.statusCode ?? 0,
          location: response.headers.location,
          body: body.slice(0, MAX_PROBE_OUTPUT_BYTES),
        }),
      );
    });
    request.end();
  });
}
