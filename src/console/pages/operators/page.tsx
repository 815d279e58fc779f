/** Cluster operators, catalogs, subscriptions, and install plans with approval. */
import { objectPath } from '../../../client/resource-path.ts';
import { questionOf } from '../../data/api/access.ts';
import { MERGE_PATCH } from '../../data/api/api.ts';
import {
  type AnyObject,
  CATALOGS,
  CLUSTER_OPERATORS,
  conditionOf,
  fieldAt,
  INSTALL_PLANS,
  INSTALLED_OPERATORS,
  listAt,
  SUBSCRIPTIONS,
  textAt,
} from '../../data/api/resources.ts';
import { catalogState, installedState, planState, type StateText, subscriptionState } from '../../data/operators.ts';
import { api } from '../../ui/context.ts';
import type { Column } from '../../ui/data-table.tsx';
import { Lists, listView } from '../../ui/lists.tsx';
import { Action, State } from '../../ui/parts.tsx';

const statusOf = (operator: AnyObject, type: string): string => conditionOf(operator, type)?.status ?? 'Unknown';

const stateColumn = (stateOf: (object: AnyObject) => StateText): Column<AnyObject> => ({
  name: 'State',
  text: (object) => stateOf(object).text,
  view: (object) => <State {...stateOf(object)} />,
});

const VIEWS = [
  listView(CLUSTER_OPERATORS, 'Cluster operators', [
    { name: 'Version', text: (operator) => textAt(listAt(operator, 'status', 'versions')[0], 'version') },
    {
      name: 'State',
      text: (operator) => statusOf(operator, 'Available'),
      view: (operator) => {
        if (statusOf(operator, 'Available') !== 'True')
          return <State level="bad" text={`not available: ${conditionOf(operator, 'Available')?.message ?? ''}`} />;
        if (statusOf(operator, 'Degraded') === 'True')
          return <State level="bad" text={`degraded: ${conditionOf(operator, 'Degraded')?.message ?? ''}`} />;
        return statusOf(operator, 'Progressing') === 'True' ? (
          <State level="warn" text="progressing" />
        ) : (
          <State level="good" text="available" />
        );
      },
    },
  ]),
  listView(CATALOGS, 'Catalogs', [
    { name: 'Display name', text: (catalog) => textAt(catalog, 'spec', 'displayName') },
    { name: 'Image', text: (catalog) => textAt(catalog, 'spec', 'image') },
    stateColumn(catalogState),
  ]),
  listView(SUBSCRIPTIONS, 'Subscriptions', [
    { name: 'Package', text: (each) => textAt(each, 'spec', 'name') },
    { name: 'Channel', text: (each) => textAt(each, 'spec', 'channel') },
    { name: 'Installed', text: (each) => textAt(each, 'status', 'installedCSV') },
    { name: 'Approval', text: (each) => textAt(each, 'spec', 'installPlanApproval') || 'Automatic' },
    stateColumn(subscriptionState),
  ]),
  listView(INSTALLED_OPERATORS, 'Installed operators', [
    { name: 'Display name', text: (each) => textAt(each, 'spec', 'displayName') },
    { name: 'Version', text: (each) => textAt(each, 'spec', 'version') },
    stateColumn(installedState),
  ]),
  listView(INSTALL_PLANS, 'Install plans', [
    {
      name: 'Installs',
      text: (plan) => {
        const names = fieldAt(plan, 'spec', 'clusterServiceVersionNames');
        return Array.isArray(names) ? names.map(String).join(', ') : '';
      },
    },
    stateColumn(planState),
    {
      name: 'Approval',
      text: (plan) => (fieldAt(plan, 'spec', 'approved') === true ? 'approved' : 'required'),
      view: (plan) => {
        const { name = '', namespace = '' } = plan.metadata ?? {};
        return fieldAt(plan, 'spec', 'approved') === true ? (
          'approved'
        ) : (
          <Action
            label={`Approve ${name}`}
            question={questionOf('patch', INSTALL_PLANS, namespace)}
            confirm={`The install plan ${namespace}/${name} is approved and carried out.`}
            done="The install plan is approved."
            run={() =>
              api.json(objectPath(INSTALL_PLANS, name, namespace), {
                method: 'PATCH',
                contentType: MERGE_PATCH,
                body: { spec: { approved: true } },
              })
            }
          />
        );
      },
    },
  ]),
];

export default function Operators() {
  return <Lists title="Operators" views={VIEWS} />;
}
