import louver
import pytest
import toys


@pytest.fixture(scope="session")
def vocabulary():
    return toys.vocabulary()


@pytest.fixture(scope="session")
def engine(vocabulary):
    return louver.Engine(vocabulary)
