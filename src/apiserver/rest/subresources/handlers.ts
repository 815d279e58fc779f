/** Handlers of the subresources binding, eviction and token. */
import type { TokenRequest } from '../../../api/generated/authentication/v1.ts';
import type { Binding } from '../../../api/generated/core/v1.ts';
import type { JsonObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { schemaOf } from '../../../api/schema/index.ts';
import { readBody } from '../../http/body.ts';
import { bodyFormat, decodeBody } from '../../http/decode.ts';
import { admitBody } from '../../pipeline/admission.ts';
import type { Handler } from '../handler.ts';
import { success } from '../status-responses.ts';
import { parseDeleteOptions } from '../writes/delete-options.ts';
import { limitOf, readObject, writeRequest } from '../writes/request-body.ts';
import { bindPod } from './binding.ts';
import { evictPod } from './eviction.ts';
import { createToken } from './token-request.ts';

export const bind: Handler = async (context, exchange, kind, info) => {
  const request = writeRequest(exchange, kind, info);
  const schema = schemaOf({ group: '', version: 'v1', kind: 'Binding' });
  const body = await readObject(context, exchange, { apiVersion: 'v1', kind: 'Binding', schema }, request);
  await bindPod(context, request, body as Binding);
  exchange.sendObject(201, success(undefined, 201));
};

export const evict: Handler = async (context, exchange, kind, info) => {
  const request = writeRequest(exchange, kind, info);
  const body = await readBody(exchange.request, limitOf(context));
  const document = decodeBody(body, bodyFormat(exchange.header('content-type')), 'Eviction');
  const eviction = { group: 'policy', version: 'v1', kind: 'Eviction' };
  const { name } = (document['metadata'] ?? {}) as { readonly name?: unknown };
  if (name !== info.name) throw errors.badRequest('name in URL does not match name in Eviction object');
  // Webhooks may change the options.
  const admitted: JsonObject = { ...document, apiVersion: 'policy/v1', kind: 'Eviction' };
  await admitBody(context.admission, request, 'CREATE', eviction, admitted);
  const given = admitted['deleteOptions'];
  const options =
    typeof given === 'object' && given !== null && !Array.isArray(given)
      ? Buffer.from(JSON.stringify(given as JsonObject))
      : Buffer.alloc(0);
  const deletion = parseDeleteOptions(options, undefined, info.query);
  const dryRun = deletion.dryRun || request.options.dryRun;
  await evictPod(context, { ...request, options: { ...request.options, dryRun } }, { ...deletion, dryRun });
  exchange.sendObject(201, success(undefined, 201));
};

export const token: Handler = async (context, exchange, kind, info) => {
  const request = writeRequest(exchange, kind, info);
  const schema = schemaOf({ group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' });
  const tokenKind = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', schema };
  const body = await readObject(context, exchange, tokenKind, request);
  exchange.sendObject(201, await createToken(context, request, body as TokenRequest));
};
