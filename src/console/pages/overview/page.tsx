import { useEffect, useState } from 'preact/hooks';
import { requestJson } from '../../session/request.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showFailure } from '../../shell/toasts.tsx';

/** First page: the version of the cluster. */
export default function Overview() {
  const [version, setVersion] = useState('');
  useCommand('kubectl version');
  useEffect(() => {
    requestJson<{ readonly gitVersion?: string }>('/version').then(
      ({ gitVersion = '' }) => setVersion(gitVersion),
      showFailure,
    );
  }, []);
  return (
    <>
      <h1>Overview</h1>
      <p>Kubernetes {version}</p>
    </>
  );
}
