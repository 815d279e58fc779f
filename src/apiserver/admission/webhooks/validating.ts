/** Validating webhooks. They run in parallel. Source: k8s.io/apiserver/pkg/admission/plugin/webhook/validating. */
import type { Kinds } from '../../pipeline/kinds.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { isExempt } from '../matching.ts';
import { annotations } from './annotations.ts';
import { Configurations, type MatchingWebhook } from './configurations.ts';
import type { HookCaller } from './hook-caller.ts';

export function validatingWebhooks(caller: HookCaller, cache: () => KindCache, kinds: () => Kinds): AdmissionPlugin {
  const configurations = new Configurations(cache, kinds);
  return {
    name: 'ValidatingAdmissionWebhook',
    takesBodies: true,
    validate(request) {
      const concerned = configurations.matching(request);
      if (concerned.length === 0 || isExempt(request)) return;
      const callWebhook = (each: MatchingWebhook) =>
        caller.call(each, request, 'validating', annotations('validating', each, request));
      return Promise.allSettled(concerned.map(callWebhook)).then((outcomes) => {
        // The first rejection in configuration order is returned.
        const refused = outcomes.find((each) => each.status === 'rejected');
        if (refused !== undefined) throw refused.reason;
      });
    },
  };
}
