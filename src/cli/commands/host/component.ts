import { COMPONENTS } from '../../../host/process/component-names.ts';
import { UsageError } from '../../command.ts';

export function checkComponent(name: string | undefined): string {
  if (name === undefined || !COMPONENTS.some((each) => each === name)) {
    throw new UsageError(`unknown component "${name ?? ''}": give ${COMPONENTS.join(', ')}`);
  }
  return name;
}
