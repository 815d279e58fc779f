/**
 * Mutating webhook configurations. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration.
 */

import { olderWebhooks, setWebhookDefaults, webhookStrategy } from '../../../admission-rules/webhooks.ts';
import type { MutatingWebhookConfiguration } from '../../../generated/admissionregistration/v1.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';

export const mutatingWebhookConfigurations: KindDefinition<MutatingWebhookConfiguration> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
  singular: 'mutatingwebhookconfiguration',
  listKind: 'MutatingWebhookConfigurationList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration',
  storagePrefix: 'mutatingwebhookconfigurations',
  allowUnconditionalUpdate: false,
  aliases: [olderWebhooks()],
  setDefaults(configuration) {
    for (const webhook of configuration.webhooks ?? []) {
      setWebhookDefaults(webhook);
      webhook.reinvocationPolicy ??= 'Never';
    }
  },
  strategy: webhookStrategy,
  columns: [
    nameColumn,
    column<MutatingWebhookConfiguration>('Webhooks', 'Number of webhooks.', (each) => each.webhooks?.length ?? 0, {
      type: 'integer',
    }),
    ageColumn,
  ],
};
